extension InboundMessage {
  /// Calls its body with every index below a count, maybe on several threads at once, and returns
  /// when all calls have: `DispatchQueue.concurrentPerform(iterations:execute:)`, say.
  package typealias Repeater =
    @Sendable (_ count: Int, _ body: @Sendable (Int) -> Void) -> Void
}

/// The values of a pure function for every index below a count, in order. A repeater makes many
/// calls at once; without one, they come one after the other. The values are the same.
///
/// - Parameters:
///   - count: How many values.
///   - piece: How many are worth a call of the repeater.
///   - repeater: The repeater that calls the function.
///   - value: The function.
/// - Returns: Its values.
func values<Value: Sendable>(
  _ count: Int, by piece: Int, with repeater: InboundMessage.Repeater?,
  _ value: @Sendable (Int) -> Value
) -> [Value] {
  guard let repeater, count > piece else { return (0..<count).map(value) }
  return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
    // Every call writes to elements of its own, and all have returned before they are read.
    nonisolated(unsafe) let target = buffer.baseAddress
    repeater((count + piece - 1) / piece) { number in
      for index in (number * piece)..<min(count, (number + 1) * piece) {
        target?.advanced(by: index).initialize(to: value(index))
      }
    }
    initialized = count
  }
}
