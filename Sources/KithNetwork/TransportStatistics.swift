internal import Synchronization

/// What a ``Transport`` has counted since it was made.
public struct TransportStatistics: Hashable, Sendable {
  /// Connections whose handshake is not done now, accepted ones.
  public var halfOpen = 0
  /// Sessions now.
  public var sessions = 0
  /// Connections accepted.
  public var accepted = 0
  /// Connections closed at once because there were too many with a valid first message.
  public var refused = 0
  /// Half-open connections closed to make room.
  public var evicted = 0
  /// Handshakes that failed or took too long, on either side.
  public var handshakeFailures = 0
  /// First messages that had been answered before.
  public var replays = 0
  /// Frames that did not decrypt.
  public var decryptFailures = 0
  /// Malformed frames and messages over a limit.
  public var protocolViolations = 0
  /// Sessions closed because too much waited to be sent.
  public var overflows = 0
  /// Sessions closed because nothing came for too long.
  public var silences = 0
  /// Bytes received on sessions, as they travelled.
  public var bytesReceived: UInt64 = 0
  /// Bytes handed to sessions' sockets, as they travel.
  public var bytesSent: UInt64 = 0
}

/// The counters that handlers on all event loops share.
final class TransportCounters: Sendable {
  private let values = Mutex(TransportStatistics())

  var snapshot: TransportStatistics { values.withLock { $0 } }

  func update(_ change: (inout TransportStatistics) -> Void) {
    values.withLock { change(&$0) }
  }
}
