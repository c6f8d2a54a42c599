internal import KithCrypto

/// The parts of a batch that came so far on a link. Nothing is applied before the last.
struct BatchAssembly {
  /// The result of adding a part.
  enum OnPart {
    /// Others follow.
    case more
    /// It was the last of a batch that is to be applied.
    case whole(Batch, Taint)
    /// It was the last of a batch that is not wanted.
    case unwanted
    /// It is another store's, or the batch is too large: the peer breaks the protocol.
    case violation
  }

  private var batch: Batch?
  private var bytes = 0
  private var taint = Taint()
  /// Bytes of each author that are kept of it.
  private(set) var weights = AuthorWeights()

  /// Adds a part. `room`: how much of a batch is kept; nil: this store's is not wanted.
  mutating func add(_ part: BatchPart, size: Int, keeping room: BatchRoom?) -> OnPart {
    var batch = self.batch.take() ?? Batch(store: part.store, answers: part.answers)
    bytes += size
    guard batch.store == part.store, bytes <= Limits.batchBytes else { return .violation }
    batch.isEverything = part.isEverything
    batch.isUnfinished = part.isUnfinished
    batch.covers += part.covers
    if let room {
      for checked in part.changeSets { collect(checked, into: &batch, keeping: room) }
    } else {
      // Later parts may be wanted, but do not count without this part.
      taint.isTotal = true
    }
    if part.hasMore {
      self.batch = batch
      return .more
    }
    defer { self = BatchAssembly() }
    return room == nil ? .unwanted : .whole(batch, taint)
  }

  private mutating func collect(
    _ checked: CheckedChangeSet, into batch: inout Batch, keeping room: BatchRoom
  ) {
    switch checked {
    case .sound(let changeSet):
      let author = changeSet.reference.device
      switch room.judge(changeSet, beside: weights) {
      case .keep:
        batch.changeSets.append(changeSet)
        if author != room.own { weights.add(changeSet.weight, of: author) }
      case .drop: break
      case .cannotJudge:
        taint.chains.insert(changeSet.header.chain)
        taint.isUnjudged = true
      case .tooMuch:
        taint.chains.insert(changeSet.header.chain)
        taint.overLimit.insert(author)
      }
    case .unsound(let chain):
      taint.rejected += 1
      taint.chains.insert(chain)
    case .unknownFormat(let chain):
      taint.chains.insert(chain)
      taint.isUnjudged = true
    }
  }
}

/// How much of an unfinished batch is held until the rest comes. It holds no more of one author
/// than the node keeps of that author. All batches under way together hold no more than the node
/// keeps of all authors.
struct BatchRoom {
  enum Judgement {
    case keep
    /// Its author is revoked.
    case drop
    /// Its author is not known.
    case cannotJudge
    case tooMuch
  }

  let own: DeviceID
  let roster: Roster
  /// Bytes of one author.
  let authorBytes: Int
  /// Bytes of all batches of other links.
  let elsewhereBytes: Int

  func judge(_ changeSet: ChangeSet, beside weights: AuthorWeights) -> Judgement {
    let author = changeSet.reference.device
    guard author != own else { return .keep }
    guard !roster.isRevoked(author) else { return .drop }
    guard roster.isMember(author) else { return .cannotJudge }
    let fits =
      weights[author] + changeSet.weight <= authorBytes
      && elsewhereBytes + weights.total + changeSet.weight <= Limits.authorsBytes
    return fits ? .keep : .tooMuch
  }
}

/// Chains of a batch that may not be counted in the vector, since something of them was rejected
/// or cannot be judged yet.
struct Taint {
  /// Whether no chain may be counted, because a part of the batch was dropped unread.
  var isTotal = false
  var chains: Set<ChainID> = []
  var rejected = 0
  /// Whether something cannot be judged yet.
  var isUnjudged = false
  /// Authors of whom the batch held more than is kept.
  var overLimit: Set<DeviceID> = []

  func covers(_ chain: ChainID) -> Bool { isTotal || chains.contains(chain) }

  /// Takes over the taint of an earlier piece of the same answer: this piece may not count those
  /// chains either. Rejections and excess that were reported before are not reported again.
  mutating func follow(_ earlier: Taint) {
    isTotal = isTotal || earlier.isTotal
    chains.formUnion(earlier.chains)
    // A peer may send pieces without end.
    if chains.count > Limits.taintedChains { (isTotal, chains) = (true, []) }
    isUnjudged = isUnjudged || earlier.isUnjudged
  }
}
