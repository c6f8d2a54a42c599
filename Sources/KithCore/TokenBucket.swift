/// Limits a rate: a burst at once, then as much as comes back with time. A token is its owner's unit:
/// a byte, a trial, an epoch. Times are in milliseconds.
///
/// It limits work, which is done once. What is kept has bounds of its own, by the bytes kept
/// (``AuthorBudget``, ``BatchBounds``).
package struct TokenBucket: Sendable {
  private let most: Int
  private let milliseconds: Int
  /// In tokens times ``milliseconds``.
  private var level: Int
  private var filledAt: UInt64?

  /// Makes a full bucket of `most` tokens. So many come back in `milliseconds`.
  package init(_ most: Int, per milliseconds: Int) {
    self.most = most
    self.milliseconds = milliseconds
    level = most * milliseconds
  }

  /// Takes all tokens or none. A time that goes back adds none.
  package mutating func spend(_ tokens: Int = 1, at now: UInt64) -> Bool {
    fill(at: now)
    guard tokens <= most, tokens * milliseconds <= level else { return false }
    level -= tokens * milliseconds
    return true
  }

  /// Takes tokens, also those that are still to come. Returns how long nothing more may be taken.
  package mutating func borrow(_ tokens: Int, at now: UInt64) -> UInt64 {
    fill(at: now)
    level -= min(tokens, most) * milliseconds
    return UInt64((max(0, -level) + most - 1) / most)
  }

  private mutating func fill(at now: UInt64) {
    let passed = now - min(filledAt ?? now, now)
    filledAt = now
    let full = most * milliseconds
    // A debt is at most a few messages.
    level = passed < UInt64(milliseconds) ? min(full, level + Int(passed) * most) : full
  }
}
