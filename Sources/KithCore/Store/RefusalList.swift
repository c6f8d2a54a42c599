/// The refused transactions that a store's program has not taken. Numbers rise.
struct RefusalList {
  /// Oldest first.
  private(set) var refusals: [Refusal] = []
  private(set) var bytes = 0
  private var next: UInt64 = 1

  mutating func add(_ draft: Draft, because reason: Refusal.Reason) -> Refusal {
    let refusal = Refusal(
      number: next, reason: reason, clock: draft.clock, operations: draft.operations)
    restore(refusal)
    return refusal
  }

  mutating func take(through number: UInt64) -> [Refusal] {
    let taken = refusals.filter { $0.number <= number }
    refusals.removeAll { $0.number <= number }
    bytes -= taken.reduce(0) { $0 + $1.operations.keptBytes }
    return taken
  }

  /// Adds a refusal from storage; called in order of numbers.
  mutating func restore(_ refusal: Refusal) {
    refusals.append(refusal)
    bytes += refusal.operations.keptBytes
    next = max(next, refusal.number + 1)
  }
}
