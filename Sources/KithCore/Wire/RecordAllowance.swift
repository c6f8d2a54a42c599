/// How many records a session may bring: each signature takes processor time, and a peer can bring
/// the same records again. Refilled as time passes.
package struct RecordAllowance: Sendable {
  private var bytes = Limits.recordBurstBytes
  private var refilledAt: UInt64

  /// The whole allowance, at a reading of the monotonic clock in milliseconds.
  package init(at milliseconds: UInt64) {
    refilledAt = milliseconds
  }

  /// Counts a message. Returns false if it carries records and they are too many: then the session
  /// is to be closed.
  ///
  /// - Complexity: O(1).
  package mutating func take(_ message: InboundMessage, at milliseconds: UInt64) -> Bool {
    guard case .records = message.body else { return true }
    let passed = milliseconds - min(refilledAt, milliseconds)
    refilledAt = milliseconds
    let refill = Int(clamping: passed).multipliedReportingOverflow(
      by: Limits.recordBytesPerMillisecond)
    bytes = min(
      Limits.recordBurstBytes,
      bytes + min(refill.overflow ? .max : refill.partialValue, Limits.recordBurstBytes))
    bytes -= max(message.size, Limits.recordsMessageCost)
    return bytes >= 0
  }
}
