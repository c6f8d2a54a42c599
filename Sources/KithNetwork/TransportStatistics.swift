internal import Synchronization

/// The counters of a ``Transport`` since it was made.
package struct TransportStatistics: Hashable, Sendable {
  /// At present.
  package var halfOpen = 0
  /// At present.
  package var sessions = 0
  package var accepted = 0
  /// Connections and sessions refused because of a limit.
  package var refused = 0
  /// Half-open connections closed for newer ones.
  package var evicted = 0
  /// On either side.
  package var handshakeFailures = 0
  /// First messages that were answered before.
  package var replays = 0
  package var decryptFailures = 0
  /// Malformed frames and messages over a limit.
  package var protocolViolations = 0
  /// Sessions closed because of too many unsent bytes.
  package var overflows = 0
  /// Sessions closed because no message came for too long.
  package var silences = 0
  /// On sessions, as on the wire.
  package var bytesReceived: UInt64 = 0
  /// Passed to sessions' sockets, as on the wire.
  package var bytesSent: UInt64 = 0
}

final class TransportCounters: Sendable {
  private let values = Mutex(TransportStatistics())

  var snapshot: TransportStatistics { values.withLock { $0 } }

  func update(_ change: (inout TransportStatistics) -> Void) {
    values.withLock { change(&$0) }
  }
}
