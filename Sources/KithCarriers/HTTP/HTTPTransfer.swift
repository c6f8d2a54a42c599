import Glibc
import Kith

/// One request and its answer, as libcurl's callbacks fill it.
final class HTTPTransfer {
  let limit: Int
  let allowsLocal: Bool
  let work: BlockingWork
  private(set) var headers: [(name: String, value: String)] = []
  private(set) var body: [UInt8] = []
  private(set) var isTooMuch = false
  private(set) var isRefused = false
  private var headerBytes = 0
  private var bytesMoved: Int64 = 0

  init(limit: Int, allowsLocal: Bool, work: BlockingWork) {
    self.limit = limit
    self.allowsLocal = allowsLocal
    self.work = work
  }

  /// Sets the callbacks. The handle keeps an unowned pointer to this object.
  func register(with curl: CurlLibrary, _ handle: CurlLibrary.Handle) -> Bool {
    let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    return curl.set(handle, .write, unsafeBitCast(write, to: UnsafeRawPointer.self))
      && curl.set(handle, .writeContext, context)
      && curl.set(handle, .header, unsafeBitCast(header, to: UnsafeRawPointer.self))
      && curl.set(handle, .headerContext, context)
      && curl.set(handle, .openSocket, unsafeBitCast(openSocket, to: UnsafeRawPointer.self))
      && curl.set(handle, .openSocketContext, context)
      && curl.set(handle, .progress, unsafeBitCast(progress, to: UnsafeRawPointer.self))
      && curl.set(handle, .progressContext, context)
      && curl.set(handle, .noProgress, 0)
  }

  /// Returns whether to go on.
  fileprivate func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    work.progress()
    guard bytes.count <= limit - body.count else {
      isTooMuch = true
      return false
    }
    body += bytes
    return !work.isAbandoned
  }

  /// Takes a line of a header. Each status line begins another answer: those with status 100, and
  /// those that ask to sign in, come before the last.
  fileprivate func takeHeader(_ line: UnsafeRawBufferPointer) -> Bool {
    work.progress()
    headerBytes += line.count
    guard headerBytes <= CarrierLimits.headerBytes else {
      isTooMuch = true
      return false
    }
    let text = String(decoding: line, as: UTF8.self)
    if text.hasPrefix("HTTP/") {
      headers = []
      body = []
    } else if let colon = text.firstIndex(of: ":") {
      let value = text[text.index(after: colon)...]
        .drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace).reversed()
      let name = text[..<colon].lowercased()
      headers.append((name, String(value)))
      if name == "content-length", let bytes = Int(String(value)), bytes > limit {
        isTooMuch = true
        return false
      }
    }
    return !work.isAbandoned
  }

  /// Opens a socket for an address (libcurl's `struct curl_sockaddr`); -1 to refuse it.
  fileprivate func open(_ address: UnsafeRawPointer) -> Int32 {
    let family = address.load(as: Int32.self)
    let socketAddress = address + 16
    let bytes: [UInt8]
    switch family {
    case AF_INET:
      bytes = Array(UnsafeRawBufferPointer(start: socketAddress + 4, count: 4))
    case AF_INET6:
      bytes = Array(UnsafeRawBufferPointer(start: socketAddress + 8, count: 16))
    default: return -1
    }
    guard allowsLocal || !HostRules.isLocal(address: bytes) else {
      isRefused = true
      return -1
    }
    return socket(
      family, address.load(fromByteOffset: 4, as: Int32.self) | Int32(SOCK_CLOEXEC.rawValue),
      address.load(fromByteOffset: 8, as: Int32.self))
  }

  fileprivate func moved(_ bytes: Int64) -> Bool {
    if bytes != bytesMoved {
      bytesMoved = bytes
      work.progress()
    }
    return !work.isAbandoned
  }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer? {
  context.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
}

/// libcurl ends a transfer if fewer bytes are taken than it gave.
private let write: @convention(c) (UnsafeRawPointer?, Int, Int, UnsafeMutableRawPointer?) -> Int = {
  bytes, size, count, context in
  let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
  return transfer(context)?.take(buffer) == true ? buffer.count : -1
}

private let header: @convention(c) (UnsafeRawPointer?, Int, Int, UnsafeMutableRawPointer?) -> Int =
  {
    bytes, size, count, context in
    let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context)?.takeHeader(buffer) == true ? buffer.count : -1
  }

private let openSocket:
  @convention(c) (UnsafeMutableRawPointer?, Int32, UnsafeMutableRawPointer?) -> Int32 = {
    context, _, address in
    guard let address else { return -1 }
    return transfer(context)?.open(address) ?? -1
  }

/// Not zero ends the transfer.
private let progress:
  @convention(c) (UnsafeMutableRawPointer?, Int64, Int64, Int64, Int64) -> Int32 = {
    context, _, received, _, sent in
    transfer(context)?.moved(received &+ sent) == true ? 0 : 1
  }
