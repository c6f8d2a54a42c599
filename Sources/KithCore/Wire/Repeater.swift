extension InboundMessage {
  /// Calls its body with every index below a count, maybe on several threads at once, and returns
  /// after all calls, like `DispatchQueue.concurrentPerform(iterations:execute:)`. The body may live
  /// on a little longer.
  package typealias Repeater =
    @Sendable (_ count: Int, _ body: @escaping @Sendable (Int) -> Void) -> Void
}

/// Returns a pure function's values for every index below `count`, in order.
///
/// The repeater gets one call for each `piece` of values; without a repeater, the calls come one
/// after the other.
func values<Value: Sendable>(
  _ count: Int, by piece: Int, with repeater: InboundMessage.Repeater?,
  _ value: @escaping @Sendable (Int) -> Value
) -> [Value] {
  guard let repeater, count > piece else { return (0..<count).map(value) }
  return Array(unsafeUninitializedCapacity: count) { buffer, initialized in
    // Each call writes only its own elements, and all calls return before the array is read.
    nonisolated(unsafe) let target = buffer.baseAddress
    repeater((count + piece - 1) / piece) { number in
      for index in (number * piece)..<min(count, (number + 1) * piece) {
        target?.advanced(by: index).initialize(to: value(index))
      }
    }
    initialized = count
  }
}
