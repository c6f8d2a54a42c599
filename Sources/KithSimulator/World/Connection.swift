internal import KithCore

/// A TCP connection of the run with the Noise session on it: two pipes that carry whole messages.
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
    /// The receiver's process; another one never hears of this connection.
    let life: Int
    /// The session as the receiver numbers it.
    let session: SessionID
    var packets: [Packet] = []
    var bytes = 0
    /// When the last packet arrives.
    var lastArrival: UInt64 = 0
    /// Whether the sender is to be told that there is room.
    var isRoomAwaited = false
    /// Whether the sender was told that it takes no more.
    var isFull = false
    /// Whether an arrival is waiting for a partition to end.
    var isStalled = false
    /// Whether the receiver knows that the connection ended.
    var hasEnded = false
  }

  /// The first carries what the dialler sends.
  var pipes: [Pipe]
  var isOpen = true
  /// When it was made, in microseconds, and whether by the overlay's plan.
  var openedAt: UInt64 = 0
  /// Sides to whom the other has proved to be a member.
  var promoted = [false, false]

  /// A pipe's bytes above which the sender is told to stop, and below which to go on.
  static let highWaterBytes = 1 << 20
  static let lowWaterBytes = 256 << 10
}
