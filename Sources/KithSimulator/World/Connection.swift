internal import KithCore

/// A TCP connection with its Noise session: two pipes of whole messages.
struct Connection {
  /// A message on its way.
  struct Packet {
    var bytes: Int
    var message: InboundMessage
    var arrivesAt: UInt64
  }

  /// One direction.
  struct Pipe {
    let from: DeviceNumber
    let to: DeviceNumber
    /// The receiver's process; a later one never hears of this connection.
    let life: Int
    /// The receiver's number of the session.
    let session: SessionID
    var packets: [Packet] = []
    var bytes = 0
    /// The arrival time of the last packet.
    var lastArrival: UInt64 = 0
    /// Whether the sender asked to be told of room.
    var isRoomAwaited = false
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
  /// When it was made, in microseconds, and whether by the overlay's plan.
  var openedAt: UInt64 = 0
  /// Sides that know the other as a member.
  var promoted = [false, false]

  /// The bytes of a pipe above which the sender is told to stop, and below which to continue.
  static let highWaterBytes = 1 << 20
  static let lowWaterBytes = 256 << 10
}
