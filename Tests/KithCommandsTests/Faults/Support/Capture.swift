import CLinux
import Foundation
import Glibc
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

  /// Listens in a namespace until ``end()``; throws where this user may not.
  init(namespace path: String) async throws {
    descriptor = try await Self.onThread { try Self.open(path) }
    Thread.detachNewThread { self.listen() }
  }

  deinit { close(descriptor) }

  /// What passed so far, of the most that is kept.
  var frames: [[UInt8]] { state.withLock { $0.frames } }

  /// What was sent as UDP to a port, with the hop limit that it was sent with.
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

  /// Hears no more.
  func end() { state.withLock { $0.isOver = true } }

  /// A socket belongs to the namespace that its thread was in when it was opened; the thread ends then.
  private static func open(_ path: String) throws -> Int32 {
    let namespace = Glibc.open(path, O_RDONLY)
    guard namespace >= 0 else { throw NotInTime(description: "no namespace at \(path)") }
    defer { close(namespace) }
    let networkKind: Int32 = 0x4000_0000
    guard setns(namespace, networkKind) == 0 else {
      throw NotInTime(description: "setns: \(errno)")
    }
    let allProtocols = Int32(UInt16(0x0003).bigEndian)
    let descriptor = socket(AF_PACKET, Int32(SOCK_RAW.rawValue), allProtocols)
    guard descriptor >= 0 else { throw NotInTime(description: "packet socket: \(errno)") }
    var patience = timeval(tv_sec: 0, tv_usec: 100_000)
    setsockopt(
      descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    var room: Int32 = 8 << 20
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &room, socklen_t(MemoryLayout<Int32>.size))
    return descriptor
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
