internal import KithCrypto

/// One store's exchange in a session.
struct StoreExchange {
  /// The state of the requested answers.
  private enum Pull {
    /// None was applied yet.
    case awaited
    /// Part of the last one cannot be judged yet; it is requested again.
    case unjudged
    /// The last one was judged whole.
    case judged
  }

  /// Data for the peer once the session takes more.
  enum Pending {
    /// Change sets whose pushes were left out.
    case missed
    /// An answer that has not begun.
    case asked(StoreHave, number: UInt64)
    case rest(Answer)
  }

  /// An unfinished answer's pieces so far.
  struct Unfinished {
    var taint: Taint
    /// Whether they held news, which other peers get with the last piece.
    var isNews: Bool
  }

  private var pull = Pull.awaited
  private(set) var unfinished: Unfinished?
  /// The peer's coverage, as last received.
  var vector: [ChainID: UInt64] = [:]
  /// Whether the peer is below its horizon, as last received.
  var isBelow = false
  /// Whether digests of equal vectors were exchanged in this session.
  private(set) var isCompared = false
  /// ``StoreReplica/revision`` when the digest was last sent to the peer; nil if vectors differed.
  private(set) var sentRevision: UInt64?
  /// Whether the peer's first `Have` was answered, so it gets pushes.
  var isAnswered = false
  /// Whether the policies differ, so nothing is exchanged.
  var isMismatched = false
  /// Whether a divergence was reported.
  var hasDiverged = false
  var pending: Pending?

  /// Whether an answer was applied.
  var isPulled: Bool { pull != .awaited }
  var isUnjudged: Bool { pull == .unjudged }
  /// Whether no answer was applied, or the last one was not judged whole.
  var isAwaited: Bool { pull != .judged }

  /// The digest was sent to the peer. `revision` is nil if vectors differ.
  mutating func noteDigestSent(_ revision: UInt64?) {
    sentRevision = revision
    isCompared = isCompared || revision != nil
  }

  /// The peer sent the digest of an equal vector.
  mutating func noteCompared() { isCompared = true }

  /// `taint` and `isNews` include earlier pieces; only the last piece answers.
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

  /// Whether this device's drafts may be published: the peer's data was applied, or it is a new
  /// device, which has none.
  func allowsPublishing(_ store: StoreIdentifier) -> Bool {
    isExchanging && (joiner != nil || self[store].isPulled)
  }

  /// Whether both sides have the same policy for a store.
  enum OnPolicy {
    case same
    /// The policies are the same again: request the store.
    case sameAgain
    /// `isNews`: they did not differ before.
    case differs(isNews: Bool)
  }

  mutating func compare(_ theirs: StoreHave, with ours: Policy) -> OnPolicy {
    let wasMismatched = self[theirs.store].isMismatched
    let isMismatched = theirs.policy != ours
    if isMismatched != wasMismatched { self[theirs.store].isMismatched = isMismatched }
    return isMismatched ? .differs(isNews: !wasMismatched) : wasMismatched ? .sameAgain : .same
  }

  /// Notes the peer's coverage; over the limit, only of chains known here.
  mutating func note(
    _ received: [ChainID: UInt64], of store: StoreIdentifier, isWhole: Bool,
    knowing isKnown: (ChainID) -> Bool
  ) {
    var vector = received
    if !isWhole { vector.merge(self[store].vector, uniquingKeysWith: max) }
    let others = stores.reduce(0) {
      $1.key == store ? $0 : $0 + $1.value.vector.count
    }
    if vector.count + others > Limits.vectorEntriesPerSession {
      vector = vector.filter { isKnown($0.key) }
    }
    if vector.count <= Limits.chainsPerStore { self[store].vector = vector }
  }

  mutating func forget(_ revoked: Set<DeviceID>) {
    for store in stores.keys {
      self[store].vector = self[store].vector.filter { !revoked.contains($0.key.device) }
    }
  }
}
