/// The turns of an invitation: one exchange at a time; the next goes to the first waiting address
/// that did not have the last, so that one host cannot keep others out.
struct PairingTurns {
  /// The result of a wait.
  enum Turn: Sendable {
    /// The exchange may begin.
    case begin
    /// The invitation is over.
    case over
  }

  typealias Take = @Sendable (Turn) -> Void

  private var waiting: [(id: UInt64, bucket: AddressBucket, take: Take)] = []
  private var last: AddressBucket?

  /// Begins an exchange that did not wait.
  mutating func began(_ bucket: AddressBucket) {
    last = bucket
  }

  /// Adds a waiting joiner. The gate bounds their number.
  mutating func wait(_ id: UInt64, from bucket: AddressBucket, _ take: @escaping Take) {
    waiting.append((id, bucket, take))
  }

  /// Removes a waiting joiner.
  mutating func leave(_ id: UInt64) {
    waiting.removeAll { $0.id == id }
  }

  /// Takes the next one; nil: none waits.
  mutating func next() -> Take? {
    guard let index = waiting.firstIndex(where: { $0.bucket != last }) ?? waiting.indices.first
    else { return nil }
    let next = waiting.remove(at: index)
    last = next.bucket
    return next.take
  }

  /// Takes all that wait.
  mutating func empty() -> [Take] {
    defer { waiting = [] }
    return waiting.map(\.take)
  }
}
