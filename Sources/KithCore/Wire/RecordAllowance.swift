/// Bounds the records that a session brings, because each signature takes processor time and a peer
/// can repeat records. It refills with time.
package struct RecordAllowance: Sendable {
  private var bytes = Limits.recordBurstBytes
  private var refilledAt: UInt64

  package init(at milliseconds: UInt64) {
    refilledAt = milliseconds
  }

  /// Counts a message. If false, its records exceed the allowance: close the session.
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
