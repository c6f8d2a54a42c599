internal import Synchronization

/// The counters of a ``Transport`` since it was made.
package struct TransportStatistics: Hashable, Sendable {
  /// Accepted connections with an unfinished handshake now.
  package var halfOpen = 0
  /// Sessions now.
  package var sessions = 0
  /// Connections accepted.
  package var accepted = 0
  /// Connections closed at once because too many had a valid first message.
  package var refused = 0
  /// Half-open connections closed for newer ones.
  package var evicted = 0
  /// Handshakes that failed or took too long, on either side.
  package var handshakeFailures = 0
  /// First messages that had been answered before.
  package var replays = 0
  /// Frames that did not decrypt.
  package var decryptFailures = 0
  /// Malformed frames and messages over a limit.
  package var protocolViolations = 0
  /// Sessions closed because too many bytes waited to be sent.
  package var overflows = 0
  /// Sessions closed because nothing came for too long.
  package var silences = 0
  /// Bytes received on sessions, as on the wire.
  package var bytesReceived: UInt64 = 0
  /// Bytes passed to sessions' sockets, as on the wire.
  package var bytesSent: UInt64 = 0
}

/// The counters shared by the handlers on all event loops.
final class TransportCounters: Sendable {
  private let values = Mutex(TransportStatistics())

  var snapshot: TransportStatistics { values.withLock { $0 } }

  func update(_ change: (inout TransportStatistics) -> Void) {
    values.withLock { change(&$0) }
  }
}
