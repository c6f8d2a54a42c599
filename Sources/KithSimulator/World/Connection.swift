internal import DequeModule
internal import KithCore

/// A TCP connection with its Noise session: two pipes of whole messages.
struct Connection {
  struct Packet {
    var bytes: Int
    var message: InboundMessage
    var arrivesAt: UInt64
  }

  /// A class, since a value's copy would copy its packets at each change.
  final class Pipe {
    let from: DeviceNumber
    let to: DeviceNumber
    /// The receiver's process; a later one ignores this connection.
    let life: Int
    /// The receiver's number of the session.
    let session: SessionID
    /// In the order of their arrival.
    private(set) var packets: Deque<Packet> = []
    private(set) var bytes = 0
    var lastArrival: UInt64 = 0
    var isDrainAwaited = false
    /// Whether the sender was told to stop.
    var isFull = false
    /// Whether an arrival waits for a partition to end.
    var isStalled = false
    /// Whether the receiver knows that the connection ended.
    var hasEnded = false

    init(from: DeviceNumber, to: DeviceNumber, life: Int, session: SessionID) {
      self.from = from
      self.to = to
      self.life = life
      self.session = session
    }

    func put(_ packet: Packet) {
      let index = packets.lastIndex { $0.arrivesAt <= packet.arrivesAt }.map { $0 + 1 } ?? 0
      packets.insert(packet, at: index)
      bytes += packet.bytes
      lastArrival = max(packet.arrivesAt, lastArrival)
    }

    func removeFirst() {
      bytes -= packets.removeFirst().bytes
    }

    /// Lets all packets that come later than `moment` come soon, `latency` apart.
    func hurry(after moment: UInt64, latency: UInt64) -> [UInt64] {
      lastArrival = moment
      return packets.indices.filter { packets[$0].arrivesAt > moment }.map { index in
        lastArrival += latency
        packets[index].arrivesAt = lastArrival
        return lastArrival
      }
    }

    func empty() {
      packets = []
      bytes = 0
    }
  }

  /// The first pipe is the dialler's.
  var pipes: [Pipe]
  var isOpen = true
  /// In microseconds.
  var openedAt: UInt64 = 0
  /// Sides that know the other as a member.
  var promoted = [false, false]

  /// Above the first the sender is told to stop; below the second, to continue.
  static let highWaterBytes = 1 << 20
  static let lowWaterBytes = 256 << 10
}
