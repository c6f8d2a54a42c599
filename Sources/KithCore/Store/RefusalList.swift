/// The refused transactions of a store that its program has not taken. ``bytes`` is the size of
/// these, and numbers rise and are given once.
struct RefusalList {
  /// Oldest first.
  private(set) var refusals: [Refusal] = []
  /// Their size, in bytes.
  private(set) var bytes = 0
  private var next: UInt64 = 1

  /// Adds a refused draft.
  mutating func add(_ draft: Draft, because reason: Refusal.Reason) -> Refusal {
    let refusal = Refusal(
      number: next, reason: reason, clock: draft.clock, operations: draft.operations)
    restore(refusal)
    return refusal
  }

  /// Forgets the refusals up to a number, and returns them: the program has taken them.
  mutating func take(through number: UInt64) -> [Refusal] {
    let taken = refusals.filter { $0.number <= number }
    refusals.removeAll { $0.number <= number }
    bytes -= taken.reduce(0) { $0 + $1.operations.keptBytes }
    return taken
  }

  /// Takes back a refusal from storage, in the order of their numbers.
  mutating func restore(_ refusal: Refusal) {
    refusals.append(refusal)
    bytes += refusal.operations.keptBytes
    next = max(next, refusal.number + 1)
  }
}
