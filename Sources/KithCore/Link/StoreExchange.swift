internal import KithCrypto

/// The exchange of one store on a link: the data that both sides told each other, and still owe
/// each other.
struct StoreExchange {
  /// The state of the answers that this device asked for.
  private enum Pull {
    /// None was applied yet.
    case awaited
    /// Something of the last one cannot be judged yet: it is asked for again.
    case unjudged
    /// The last one was judged whole.
    case judged
  }

  /// Whether batches are applied as they come.
  enum Order {
    case whole
    /// A batch waits for its time. Those after it are missed: they are not kept.
    case early(EarlyBatch, hasMissed: Bool)
    /// A batch was missed: no other is applied, for none may be counted any more. The session ends.
    case broken
  }

  /// The data that the peer gets once the session takes more.
  enum Owed {
    /// The change sets that were pushed meanwhile.
    case missed
    /// An answer, of which nothing was sent yet.
    case asked(StoreHave, number: UInt64)
    /// The rest of an answer.
    case rest(Answer)
  }

  /// The pieces of an answer whose rest is to follow.
  struct Unfinished {
    /// The part of them that may not be counted.
    var taint: Taint
    /// Whether they held anything new, which other peers get with the last piece.
    var isNews: Bool
  }

  private var pull = Pull.awaited
  /// The pieces so far of an answer; nil: none is unfinished.
  private(set) var unfinished: Unfinished?
  /// The coverage that the peer told.
  var vector: [ChainID: UInt64] = [:]
  /// Whether the peer's first `Have` was answered: new change sets go there at once.
  var isAnswered = false
  /// Whether the limits differ from ours: nothing is exchanged.
  var isMismatched = false
  /// Whether a divergence was reported.
  var hasDiverged = false
  var order = Order.whole
  var owed: Owed?

  /// Whether an answer was applied.
  var isPulled: Bool { pull != .awaited }
  /// Whether something of the last answer cannot be judged yet.
  var isUnjudged: Bool { pull == .unjudged }
  /// Whether no answer was applied yet of which everything could be judged.
  var isAwaited: Bool { pull != .judged }

  var isWhole: Bool { if case .whole = order { true } else { false } }

  /// A batch was applied. `taint` and `isNews` are those of the pieces before it, too. Only the last
  /// piece answers.
  mutating func noteApplied(_ batch: Batch, _ taint: Taint, isNews: Bool) {
    unfinished = batch.isUnfinished ? Unfinished(taint: taint, isNews: isNews) : nil
    if batch.answers > 0, !batch.isUnfinished { pull = taint.isUnjudged ? .unjudged : .judged }
  }
}

extension Link {
  subscript(store: StoreIdentifier) -> StoreExchange {
    get { stores[store] ?? StoreExchange() }
    _modify { yield &stores[store, default: StoreExchange()] }
  }

  /// Whether a store's limits are the same here and there.
  enum OnPolicy {
    case same
    /// They are again: the store is asked for.
    case sameAgain
    /// They differ. `isNews`: they did not before.
    case differs(isNews: Bool)
  }

  mutating func compare(_ theirs: StoreHave, with ours: Policy) -> OnPolicy {
    let wasMismatched = self[theirs.store].isMismatched
    let isMismatched = theirs.policy != ours
    if isMismatched != wasMismatched { self[theirs.store].isMismatched = isMismatched }
    return isMismatched ? .differs(isNews: !wasMismatched) : wasMismatched ? .sameAgain : .same
  }

  /// Notes the peer's coverage. If that is more than is kept of one peer, only the chains that this
  /// device knows count.
  mutating func note(
    _ told: [ChainID: UInt64], of store: StoreIdentifier, isWhole: Bool,
    knowing isKnown: (ChainID) -> Bool
  ) {
    var vector = told
    if !isWhole { vector.merge(self[store].vector, uniquingKeysWith: max) }
    let others = stores.reduce(0) {
      $1.key == store ? $0 : $0 + $1.value.vector.count
    }
    if vector.count + others > Limits.vectorEntriesPerSession {
      vector = vector.filter { isKnown($0.key) }
    }
    if vector.count <= Limits.chainsPerStore { self[store].vector = vector }
  }

  /// Forgets the peer's coverage of revoked devices' chains.
  mutating func forget(_ revoked: Set<DeviceID>) {
    for store in stores.keys {
      self[store].vector = self[store].vector.filter { !revoked.contains($0.key.device) }
    }
  }
}
