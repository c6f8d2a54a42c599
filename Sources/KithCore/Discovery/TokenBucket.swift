/// Bounds a rate: so many at once, and then so many a second. Time, in milliseconds, is an argument.
package struct TokenBucket: Sendable {
  private let perSecond: UInt64
  private let most: UInt64
  /// Thousandths of a token.
  private var thousandths: UInt64
  private var filledAt: UInt64?

  /// A full bucket of so many tokens, into which so many come a second.
  package init(tokens: Int, perSecond: Int) {
    self.perSecond = UInt64(clamping: perSecond)
    most = UInt64(clamping: tokens) * 1000
    thousandths = most
  }

  /// Takes tokens; false: there are too few, and none is taken. A time that goes back brings none.
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
