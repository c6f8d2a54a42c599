internal import KithCrypto

/// A session's batch so far. Nothing is applied before the last part.
struct BatchAssembly {
  enum OnPart {
    case more
    /// The last part of a batch to apply.
    case whole(Batch, Taint)
    /// The last part of an unwanted batch.
    case unwanted
    /// The part is of another store, or the batch is too large.
    case violation
  }

  private var batch: Batch?
  private var bytes = 0
  private var taint = Taint()
  /// Bytes kept of the batch, by author.
  private(set) var weights = AuthorWeights()

  /// Adds a part. `bounds` limit the batch; nil: it is not wanted.
  mutating func add(_ part: BatchPart, size: Int, within bounds: BatchBounds?) -> OnPart {
    var batch = self.batch.take() ?? Batch(store: part.store, answers: part.answers)
    bytes += size
    guard batch.store == part.store, bytes <= Limits.batchBytes else { return .violation }
    batch.isEverything = part.isEverything
    batch.isUnfinished = part.isUnfinished
    batch.covers += part.covers
    batch.horizon = max(batch.horizon, part.horizon)
    if let bounds {
      for checked in part.changeSets { collect(checked, into: &batch, within: bounds) }
    } else {
      // Later parts do not count without this one.
      taint.addAll()
    }
    if part.hasMore {
      self.batch = batch
      return .more
    }
    defer { self = BatchAssembly() }
    return bounds == nil ? .unwanted : .whole(batch, taint)
  }

  private mutating func collect(
    _ checked: CheckedChangeSet, into batch: inout Batch, within bounds: BatchBounds
  ) {
    switch checked {
    case .sound(let changeSet):
      let author = changeSet.reference.device
      switch bounds.judge(changeSet, beside: weights) {
      case .accept:
        // Above a piece's bytes, which honest batches have at most, judging opens the rest.
        let mayBeOpen = bytes + bounds.elsewhereBytes <= Limits.pieceBytes
        batch.changeSets.append(mayBeOpen ? changeSet : changeSet.sealed)
        weights.add(changeSet.weight, of: author)
      case .drop: break
      case .cannotJudge:
        taint.add([changeSet.header.chain])
        taint.isUnjudged = true
      case .tooMuch:
        taint.add([changeSet.header.chain])
        if author != bounds.own { taint.overLimit.insert(author) }
      }
    case .unsound(let chain):
      taint.rejected += 1
      taint.add([chain])
    case .unknownFormat(let chain):
      taint.add([chain])
      taint.isUnjudged = true
    }
  }
}

/// Bounds an unfinished batch by the limit for one author, and all batches under way by the limit
/// for all authors.
struct BatchBounds {
  enum Judgement {
    case accept
    /// Its author is revoked.
    case drop
    /// Its author is not a known member.
    case cannotJudge
    case tooMuch
  }

  let own: DeviceID
  let roster: Roster
  /// Bytes of one author.
  let authorBytes: Int
  /// Bytes of batches on other sessions.
  let elsewhereBytes: Int

  func judge(_ changeSet: ChangeSet, beside weights: AuthorWeights) -> Judgement {
    let author = changeSet.reference.device
    if author != own {
      guard !roster.isRevoked(author) else { return .drop }
      guard roster.isMember(author) else { return .cannotJudge }
    }
    // Of its own, a restored device takes all that others may have kept.
    let bytes = author == own ? Limits.authorBytes : authorBytes
    let fits =
      weights[author] + changeSet.weight <= bytes
      && elsewhereBytes + weights.total + changeSet.weight <= Limits.authorsBytes
    return fits ? .accept : .tooMuch
  }
}

/// Chains of a batch that do not count: a part was rejected or cannot be judged yet.
struct Taint {
  /// Whether no chain counts: a part was dropped unread, or too many chains are tainted.
  private(set) var isOfAllChains = false
  private(set) var chains: Set<ChainID> = []
  var rejected = 0
  var isUnjudged = false
  /// Authors over their limit.
  var overLimit: Set<DeviceID> = []

  func contains(_ chain: ChainID) -> Bool { isOfAllChains || chains.contains(chain) }

  /// Adds an answer's earlier taint, without the rejections and excess already reported.
  mutating func follow(_ earlier: Taint) {
    earlier.isOfAllChains ? addAll() : add(earlier.chains)
    isUnjudged = isUnjudged || earlier.isUnjudged
  }

  /// Adds chains; all count as tainted above a limit, because a peer may name chains without end.
  mutating func add(_ more: Set<ChainID>) {
    guard !isOfAllChains else { return }
    chains.formUnion(more)
    if chains.count > Limits.taintedChains { addAll() }
  }

  mutating func addAll() { (isOfAllChains, chains) = (true, []) }
}
