/// Limits a rate: a burst at once, then a number of tokens each second. Times are in milliseconds.
package struct TokenBucket: Sendable {
  private let perSecond: UInt64
  private let most: UInt64
  private var thousandths: UInt64
  private var filledAt: UInt64?

  /// Makes a full bucket of `tokens`.
  package init(tokens: Int, perSecond: Int) {
    self.perSecond = UInt64(clamping: perSecond)
    most = UInt64(clamping: tokens) * 1000
    thousandths = most
  }

  /// Takes all tokens or none. A time that goes back adds none.
  package mutating func take(_ count: Int = 1, at now: UInt64) -> Bool {
    let passed = now - min(filledAt ?? now, now)
    filledAt = now
    thousandths += min(passed, most) * perSecond
    thousandths = min(thousandths, most)
    let asked = UInt64(clamping: count) * 1000
    guard thousandths >= asked else { return false }
    thousandths -= asked
    return true
  }
}
