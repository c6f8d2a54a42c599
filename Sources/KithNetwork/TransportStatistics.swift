internal import Synchronization

/// The counters of a ``Transport`` since it was made, for tests.
struct TransportStatistics: Hashable, Sendable {
  /// At present.
  var halfOpen = 0
  var accepted = 0
  /// Connections and sessions refused because of a limit.
  var refused = 0
  /// Half-open connections closed for newer ones.
  var evicted = 0
  /// On either side.
  var handshakeFailures = 0
  /// First messages that were answered before.
  var replays = 0
  var decryptFailures = 0
  /// Malformed frames and messages over a limit.
  var protocolViolations = 0
  /// Sessions closed because of too many unsent bytes.
  var overflows = 0
  /// Sessions closed because no message came for too long.
  var silences = 0
}

final class TransportCounters: Sendable {
  private let values = Mutex(TransportStatistics())

  var snapshot: TransportStatistics { values.withLock { $0 } }

  func update(_ change: (inout TransportStatistics) -> Void) {
    values.withLock { change(&$0) }
  }
}
