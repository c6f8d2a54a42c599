/// The refused transactions that a store's program has not taken. Numbers rise, also over restarts:
/// storage keeps the last one taken, without its operations.
struct RefusalList {
  /// Oldest first.
  private(set) var refusals: [Refusal] = []
  private(set) var bytes = 0
  private var lastTaken: UInt64?
  private var next: UInt64 = 1

  mutating func add(_ draft: Draft, because reason: Refusal.Reason) -> Refusal {
    let refusal = Refusal(
      number: next, reason: reason, clock: draft.clock, operations: draft.operations)
    restore(refusal)
    return refusal
  }

  mutating func take(through number: UInt64, in store: StoreIdentifier) -> [Mutation] {
    let taken = refusals.prefix { $0.number <= number }
    guard var last = taken.last else { return [] }
    refusals.removeFirst(taken.count)
    bytes -= taken.reduce(0) { $0 + $1.operations.keptBytes }
    last.operations = []
    defer { lastTaken = last.number }
    let removed = [lastTaken].compactMap(\.self) + taken.dropLast().map(\.number)
    return removed.map { .remove(.store(store, .refusal($0))) }
      + [.put(.store(store, .refusal(last.number)), last.encoded())]
  }

  /// Adds a refusal from storage; called in order of numbers.
  mutating func restore(_ refusal: Refusal) {
    next = max(next, refusal.number + 1)
    guard !refusal.operations.isEmpty else { return lastTaken = refusal.number }
    refusals.append(refusal)
    bytes += refusal.operations.keptBytes
  }
}
