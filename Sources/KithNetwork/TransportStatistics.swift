internal import Synchronization

/// The counters of a ``Transport`` since it was made.
public struct TransportStatistics: Hashable, Sendable {
  /// Accepted connections with an unfinished handshake now.
  public var halfOpen = 0
  /// Sessions now.
  public var sessions = 0
  /// Connections accepted.
  public var accepted = 0
  /// Connections closed at once because too many had a valid first message.
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
  /// Sessions closed because too many bytes waited to be sent.
  public var overflows = 0
  /// Sessions closed because nothing came for too long.
  public var silences = 0
  /// Bytes received on sessions, as on the wire.
  public var bytesReceived: UInt64 = 0
  /// Bytes passed to sessions' sockets, as on the wire.
  public var bytesSent: UInt64 = 0
}

/// The counters shared by the handlers on all event loops.
final class TransportCounters: Sendable {
  private let values = Mutex(TransportStatistics())

  var snapshot: TransportStatistics { values.withLock { $0 } }

  func update(_ change: (inout TransportStatistics) -> Void) {
    values.withLock { change(&$0) }
  }
}
