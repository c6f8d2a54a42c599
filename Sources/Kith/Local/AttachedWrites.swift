/// An attached program counts its writes: those that the other program's node has accepted, made
/// durable and lost.
struct AttachedWrites: Sendable {
  /// The number of answers that accepted writes.
  var accepted = 0
  /// How many of them the node has said to be durable.
  private var durable = 0
  /// How many of them came before the last flush that the node failed.
  private var failed = 0
  /// The number of flushes that the node failed, each for newly accepted writes.
  private var failedFlushes = 0
  private var flushError: KithError?

  /// The number of accepted writes, which a flush would make durable; nil: all are durable.
  var unflushed: Int? { durable < accepted ? accepted : nil }

  /// Notes that the node flushed so many.
  mutating func noteDurable(_ accepted: Int) { durable = max(durable, accepted) }

  /// Notes that the node failed a flush. Repeated for the same writes, it is no new loss.
  mutating func note(_ error: KithError, ofFlushing accepted: Int) {
    guard error.code != .closed, accepted > failed else { return }
    failed = accepted
    failedFlushes += 1
    flushError = error
  }

  /// The latest loss; nil: none so far. `hasBrokenOff`: the node ended without a goodbye, which says
  /// that all is durable.
  func loss(hasBrokenOff: Bool) -> WriteLoss? {
    if hasBrokenOff && unflushed != nil {
      return WriteLoss(number: failedFlushes + 1, error: Self.endedEarly)
    }
    return flushError.map { WriteLoss(number: failedFlushes, error: $0) }
  }

  private static let endedEarly = KithError(
    .timedOut,
    "The program that had the directory open has ended before it said that all writes are durable. "
      + "Read the keys, and write them again if need be.")
}
