internal import KithCore

/// A TCP connection with its Noise session: two pipes of whole messages.
struct Connection {
  struct Packet {
    var bytes: Int
    var message: InboundMessage
    var arrivesAt: UInt64
  }

  struct Pipe {
    let from: DeviceNumber
    let to: DeviceNumber
    /// The receiver's process; a later one ignores this connection.
    let life: Int
    /// The receiver's number of the session.
    let session: SessionID
    var packets: [Packet] = []
    var bytes = 0
    var lastArrival: UInt64 = 0
    var isDrainAwaited = false
    /// Whether the sender was told to stop.
    var isFull = false
    /// Whether an arrival waits for a partition to end.
    var isStalled = false
    /// Whether the receiver knows that the connection ended.
    var hasEnded = false
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
