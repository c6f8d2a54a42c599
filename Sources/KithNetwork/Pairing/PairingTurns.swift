/// The turns of an invitation: one exchange at a time. The next goes to the first waiting address
/// that did not have the last, so that one host cannot keep others out.
struct PairingTurns {
  enum Turn: Sendable {
    case begin
    /// The invitation is over.
    case over
  }

  typealias Take = @Sendable (Turn) -> Void

  private var waiting: [(id: UInt64, bucket: AddressBucket, take: Take)] = []
  private var last: AddressBucket?

  /// An exchange began without waiting.
  mutating func began(_ bucket: AddressBucket) {
    last = bucket
  }

  /// The gate bounds how many wait.
  mutating func wait(_ id: UInt64, from bucket: AddressBucket, _ take: @escaping Take) {
    waiting.append((id, bucket, take))
  }

  mutating func leave(_ id: UInt64) {
    waiting.removeAll { $0.id == id }
  }

  /// Nil: none waits.
  mutating func next() -> Take? {
    guard let index = waiting.firstIndex(where: { $0.bucket != last }) ?? waiting.indices.first
    else { return nil }
    let next = waiting.remove(at: index)
    last = next.bucket
    return next.take
  }

  mutating func empty() -> [Take] {
    defer { waiting = [] }
    return waiting.map(\.take)
  }
}
