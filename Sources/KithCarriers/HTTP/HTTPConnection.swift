import Glibc
import Kith

/// A handle of libcurl with its connections, which requests use one after another. It also keeps the
/// server's last challenge, so that a digest needs one request and not two.
// Unchecked: a client lends it to one thread at a time.
final class HTTPConnection: @unchecked Sendable {
  private let curl: CurlLibrary
  let easy: CurlLibrary.Handle
  private let multi: CurlLibrary.Handle

  init(_ curl: CurlLibrary) throws(CarrierFailure) {
    self.curl = curl
    guard let easy = curl.easyInit(), let multi = curl.multiInit() else {
      throw CarrierFailure(.unexpected, "There is no memory for a connection.")
    }
    self.easy = easy
    self.multi = multi
  }

  deinit {
    _ = curl.multiCleanup(multi)
    curl.easyCleanup(easy)
  }

  /// Sends a request and receives its answer. Blocks.
  func send(
    _ request: HTTPRequest, to origin: String, login: HTTPLogin, _ options: CarrierOptions,
    _ work: BlockingWork
  ) throws(CarrierFailure) -> HTTPAnswer {
    let transfer = HTTPTransfer(
      limit: request.limit, allowsLocal: options.allowsLocal, work: work)
    var headers: CurlLibrary.Handle?
    defer { curl.listFree(headers) }
    // Empty values leave libcurl's own headers out. A wait for status 100 would cost a second with
    // servers that do not know it.
    for (name, value) in [("Expect", ""), ("Accept", ""), ("Content-Type", "")] + request.headers {
      headers = curl.listAppend(headers, value.isEmpty ? "\(name):" : "\(name): \(value)")
    }
    if case .bearer(let token) = login {
      let line = SecretText("Authorization: Bearer ", before: token)
      headers = line.withCString { curl.listAppend(headers, $0) }
    }
    let isReady =
      transfer.register(with: curl, easy)
      && setUp(request, origin + request.target, headers)
      && secure(options.authorityFile) && sign(in: login)
    guard isReady else {
      throw CarrierFailure(.unexpected, "This libcurl is too old, or was built without TLS.")
    }
    let body = request.body ?? []
    let code = body.withUnsafeBytes { body in
      // libcurl reads the body where it is. An empty one must not be a null pointer.
      withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) { nowhere in
        request.body == nil
          || curl.set(easy, .bodyBytes, offset: body.count)
            && curl.set(easy, .body, body.baseAddress ?? UnsafeRawPointer(nowhere.baseAddress))
          ? perform(work) : CurlCode.outOfMemory
      }
    }
    withExtendedLifetime(transfer) {}
    if let failure = CurlCode.failure(code, transfer, origin) { throw failure }
    return HTTPAnswer(
      status: curl.get(easy, .status), headers: transfer.headers, body: transfer.body,
      offered: HTTPAuthentication(rawValue: curl.get(easy, .offeredAuthentication)))
  }

  private func setUp(
    _ request: HTTPRequest, _ url: String, _ headers: CurlLibrary.Handle?
  ) -> Bool {
    let http1_1 = 2
    let both = 1 | 2
    // The last request's method is still set.
    return curl.set(easy, .getMethod, 1)
      && (request.body == nil || curl.set(easy, .post, 1))
      && curl.set(easy, .method, text: request.method)
      && curl.set(easy, .url, text: url) && curl.set(easy, .pathAsIs, 1)
      && curl.set(easy, .headers, headers.map { UnsafeRawPointer($0) })
      && curl.set(easy, .protocols, both) && curl.set(easy, .httpVersion, http1_1)
      && curl.set(easy, .followRedirects, 0)
      // Behind a proxy the server's address could not be checked.
      && curl.set(easy, .proxy, text: "")
      && curl.set(easy, .noSignals, 1)
      && curl.set(easy, .connectMilliseconds, CarrierLimits.connectSeconds * 1_000)
  }

  private func secure(_ authorityFile: String?) -> Bool {
    let tls1_2 = 6
    return curl.set(easy, .verifyPeer, 1) && curl.set(easy, .verifyHost, 2)
      && curl.set(easy, .tlsVersion, tls1_2)
      && (authorityFile.map(trustOnly) ?? true)
  }

  /// libcurl would add the directory of authorities that it was built with, which is the system's.
  private func trustOnly(_ authorityFile: String) -> Bool {
    curl.set(easy, .authorityFile, text: authorityFile) && curl.clear(easy, .authorityDirectory)
  }

  private func sign(in login: HTTPLogin) -> Bool {
    guard case .password(let user, let password, let ways) = login else { return true }
    return curl.set(easy, .authentication, ways.rawValue)
      && curl.set(easy, .user, text: user)
      && password.withCString { curl.set(easy, .password, UnsafeRawPointer($0)) }
  }

  /// Runs the transfer to its end, and returns libcurl's result.
  private func perform(_ work: BlockingWork) -> Int32 {
    ignoreBrokenPipes()
    let (curl, multi) = (curl, Pointer(multi))
    guard curl.multiAdd(multi.value, easy) == 0 else { return CurlCode.outOfMemory }
    defer { _ = curl.multiRemove(multi.value, easy) }
    work.setWake { _ = curl.multiWakeup(multi.value) }
    defer { work.setWake(nil) }
    var running: Int32 = 1
    while !work.isAbandoned {
      guard curl.multiPerform(multi.value, &running) == 0 else { return CurlCode.outOfMemory }
      guard running > 0 else { break }
      // It is woken by the socket, by libcurl's own timers and by `setWake`.
      _ = curl.multiPoll(multi.value, nil, 0, 1_000, nil)
    }
    var left: Int32 = 0
    // struct CURLMsg: a kind, the handle, the result.
    guard let message = curl.multiRead(multi.value, &left) else { return CurlCode.aborted }
    return message.load(fromByteOffset: 16, as: Int32.self)
  }
}

/// Keeps SIGPIPE from this thread, which belongs to ``BlockingThreads``. libcurl leaves signals alone as
/// it should in a program with threads, and a TLS library may write to a closed connection.
private func ignoreBrokenPipes() {
  var signals = sigset_t()
  sigemptyset(&signals)
  sigaddset(&signals, SIGPIPE)
  pthread_sigmask(SIG_BLOCK, &signals, nil)
}

/// A pointer to something that may be used on any thread.
// Unchecked: `curl_multi_wakeup`, the only call from another thread, is made for that.
private struct Pointer: @unchecked Sendable {
  let value: CurlLibrary.Handle

  init(_ value: CurlLibrary.Handle) { self.value = value }
}

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
  fileprivate func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
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
  fileprivate func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
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
  return transfer(context)?.receive(buffer) == true ? buffer.count : -1
}

private let header: @convention(c) (UnsafeRawPointer?, Int, Int, UnsafeMutableRawPointer?) -> Int =
  {
    bytes, size, count, context in
    let buffer = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context)?.receiveHeader(buffer) == true ? buffer.count : -1
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
