/// Whose turn it is at an invitation: one exchange at a time, and of those that wait the first whose
/// address did not have the last turn, so that one host cannot keep the others out.
struct PairingTurns {
  /// What becomes of a wait.
  enum Turn: Sendable {
    /// The exchange may begin.
    case begin
    /// The invitation is over.
    case over
  }

  typealias Take = @Sendable (Turn) -> Void

  private var waiting: [(id: UInt64, bucket: AddressBucket, take: Take)] = []
  private var last: AddressBucket?

  /// An exchange begins without having waited.
  mutating func began(_ bucket: AddressBucket) {
    last = bucket
  }

  /// Waits behind the others. How many may wait, the gate bounds.
  mutating func wait(_ id: UInt64, from bucket: AddressBucket, _ take: @escaping Take) {
    waiting.append((id, bucket, take))
  }

  /// Does not wait any longer.
  mutating func leave(_ id: UInt64) {
    waiting.removeAll { $0.id == id }
  }

  /// Who is next; nil: nobody waits.
  mutating func next() -> Take? {
    guard let index = waiting.firstIndex(where: { $0.bucket != last }) ?? waiting.indices.first
    else { return nil }
    let next = waiting.remove(at: index)
    last = next.bucket
    return next.take
  }

  /// All that wait; nobody does from here on.
  mutating func empty() -> [Take] {
    defer { waiting = [] }
    return waiting.map(\.take)
  }
}
