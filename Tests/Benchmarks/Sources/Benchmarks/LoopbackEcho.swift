import Foundation
import Glibc

@testable import KithTerminal

/// The minimum of any exchange: TCP on loopback between two threads with blocking sockets.
final class LoopbackEcho: @unchecked Sendable {
  // Unchecked: one caller at a time uses `client`, and only the echoing thread uses `server`.

  /// About the size of a small change set.
  private static let messageBytes = 256

  private let client: Int32
  private let server: Int32
  private let thread: Thread

  init() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard listener >= 0 else { throw Self.failure("socket") }
    defer { Glibc.close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        bind(listener, pointer, length) == 0 && listen(listener, 1) == 0
          && getsockname(listener, pointer, &length) == 0 && connect(client, pointer, length) == 0
      }
    }
    let server = isConnected ? accept(listener, nil, nil) : -1
    guard server >= 0 else {
      let failure = Self.failure("loopback connection")
      Glibc.close(client)
      throw failure
    }
    for end in [client, server] {
      var isOn: Int32 = 1
      setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
    }
    self.client = client
    self.server = server
    thread = Thread { Self.echo(server) }
    thread.start()
  }

  func roundTrip() -> Duration {
    ContinuousClock().measure {
      var message = [UInt8](repeating: 7, count: Self.messageBytes)
      guard write(client, message, message.count) == message.count else { return }
      Self.read(client, &message)
    }
  }

  func close() {
    shutdown(client, Int32(SHUT_RDWR))
    Glibc.close(client)
  }

  private static func echo(_ end: Int32) {
    var message = [UInt8](repeating: 0, count: messageBytes)
    while read(end, &message), write(end, message, message.count) == message.count {}
    Glibc.close(end)
  }

  @discardableResult
  private static func read(_ end: Int32, _ message: inout [UInt8]) -> Bool {
    message.withUnsafeMutableBytes { message in
      var rest = message[...]
      while !rest.isEmpty {
        let count = Glibc.read(
          end, UnsafeMutableRawBufferPointer(rebasing: rest).baseAddress, rest.count)
        guard count > 0 else { return false }
        rest = rest.dropFirst(count)
      }
      return true
    }
  }

  private static func failure(_ what: String) -> CommandFailure {
    CommandFailure(.failure, "no \(what) for the bench: \(String(cString: strerror(errno)))")
  }
}
