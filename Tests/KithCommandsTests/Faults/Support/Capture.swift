import CLinux
import Foundation
import Glibc
import KithTestSupport
import Synchronization

/// Hears every frame that passes in a network namespace, as anyone on the LAN could.
final class Capture: Sendable {
  private struct State {
    var frames: [[UInt8]] = []
    var isOver = false
  }

  private static let most = 100_000

  private let state = Mutex(State())
  private let descriptor: Int32

  /// Listens in a namespace until ``end()``; throws if this user may not.
  init(namespace path: String) async throws {
    descriptor = try await Self.onThread { try Self.open(path) }
    Thread.detachNewThread { self.listen() }
  }

  deinit { close(descriptor) }

  /// The frames captured so far, up to the limit.
  var frames: [[UInt8]] { state.withLock { $0.frames } }

  /// The datagrams that were sent to a UDP port, with the hop limit that each was sent with.
  func datagrams(to port: UInt16) -> [(isIPv6: Bool, hopLimit: UInt8, payload: [UInt8])] {
    frames.compactMap { frame in
      guard frame.count > 14 else { return nil }
      let kind = UInt16(frame[12]) << 8 | UInt16(frame[13])
      let packet = Array(frame[14...])
      let header: Int
      switch kind {
      case 0x0800 where packet.count > 28 && packet[9] == 17: header = Int(packet[0] & 15) * 4
      case 0x86DD where packet.count > 48 && packet[6] == 17: header = 40
      default: return nil
      }
      let isIPv6 = kind == 0x86DD
      guard packet.count >= header + 8,
        UInt16(packet[header + 2]) << 8 | UInt16(packet[header + 3]) == port
      else { return nil }
      let length = Int(packet[header + 4]) << 8 | Int(packet[header + 5])
      return (
        isIPv6, isIPv6 ? packet[7] : packet[8],
        Array(packet[(header + 8)..<min(packet.count, header + max(8, length))])
      )
    }
  }

  /// Stops listening.
  func end() { state.withLock { $0.isOver = true } }

  /// A socket belongs to the namespace that its thread was in when it was opened; the thread ends then.
  private static func open(_ path: String) throws -> Int32 {
    try enter(path)
    let allProtocols = Int32(UInt16(0x0003).bigEndian)
    let descriptor = socket(AF_PACKET, Int32(SOCK_RAW.rawValue), allProtocols)
    guard descriptor >= 0 else { throw NotInTime("packet socket: \(errno)") }
    var patience = timeval(tv_sec: 0, tv_usec: 100_000)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var room: Int32 = 8 << 20
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    return descriptor
  }

  private static func enter(_ path: String) throws {
    let namespace = Glibc.open(path, O_RDONLY)
    guard namespace >= 0 else { throw NotInTime("no namespace at \(path)") }
    defer { close(namespace) }
    let networkKind: Int32 = 0x4000_0000
    guard setns(namespace, networkKind) == 0 else {
      throw NotInTime("setns: \(errno)")
    }
  }

  /// Sends a datagram to a group and port, from a namespace and one of its addresses.
  static func send(
    _ payload: [UInt8], to group: String, port: UInt16, from source: String, namespace path: String
  ) async throws {
    let sent = try await onThread {
      try enter(path)
      let descriptor = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
      defer { close(descriptor) }
      var interface = in_addr(s_addr: inet_addr(source))
      setsockopt(
        descriptor, Int32(IPPROTO_IP), IP_MULTICAST_IF, &interface,
        socklen_t(MemoryLayout<in_addr>.size))
      func address(_ host: String, _ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr(host)
        return address
      }
      func withAddress(_ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>) -> Int) -> Int {
        withUnsafePointer(to: address) { pointer in
          pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
        }
      }
      let size = socklen_t(MemoryLayout<sockaddr_in>.size)
      guard withAddress(address(source, 0), { Int(bind(descriptor, $0, size)) }) == 0 else {
        return -1
      }
      return Int32(
        withAddress(address(group, port)) {
          sendto(descriptor, payload, payload.count, 0, $0, size)
        })
    }
    guard sent == payload.count else { throw NotInTime("not sent from \(source)") }
  }

  private func listen() {
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while !state.withLock({ $0.isOver }) {
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { continue }
      let frame = Array(buffer[..<count])
      state.withLock { if $0.frames.count < Self.most { $0.frames.append(frame) } }
    }
  }

  /// Runs what must not be done on one of Swift's shared threads.
  private static func onThread(_ body: @escaping @Sendable () throws -> Int32) async throws -> Int32
  {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
  }
}
