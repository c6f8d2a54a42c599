import Foundation
import Glibc
import Synchronization

/// Passes TCP connections on to a port, and keeps every byte of both directions.
final class RecordingProxy: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var descriptors: [Int32] = []
    var isClosed = false
  }

  /// Where it listens.
  let port: Int
  private let listener: Int32
  private let target: UInt16
  private let state = Mutex(State())

  /// Listens on a port of loopback that is free.
  init(to target: Int) throws {
    self.target = UInt16(target)
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = Self.loopback(0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let (listener) = (self.listener)
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, length) == 0 && listen(listener, 16) == 0
          && getsockname(listener, $0, &length) == 0
      }
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    guard isBound else { throw NotInTime(description: "no port for the proxy") }
    Thread { self.accept() }.start()
  }

  /// All bytes that have passed so far.
  var recorded: Data { Data(state.withLock { $0.bytes }) }

  /// Ends all connections.
  func close() {
    let descriptors = state.withLock { state in
      state.isClosed = true
      return state.descriptors
    }
    for descriptor in descriptors + [listener] { shutdown(descriptor, Int32(SHUT_RDWR)) }
  }

  private func accept() {
    while true {
      let client = Glibc.accept(listener, nil, nil)
      guard client >= 0 else { return }
      let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
      var address = Self.loopback(target)
      let result = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard result == 0 else {
        Glibc.close(client)
        Glibc.close(server)
        continue
      }
      state.withLock { $0.descriptors += [client, server] }
      Thread { self.pass(from: client, to: server) }.start()
      Thread { self.pass(from: server, to: client) }.start()
    }
  }

  private func pass(from source: Int32, to sink: Int32) {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(source, &bytes, bytes.count, 0)
      guard count > 0 else { break }
      state.withLock { $0.bytes += bytes.prefix(count) }
      var sent = 0
      while sent < count {
        let part = bytes[sent..<count].withUnsafeBytes {
          send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard part > 0 else { return }
        sent += part
      }
    }
    shutdown(sink, Int32(SHUT_WR))
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
  }
}
