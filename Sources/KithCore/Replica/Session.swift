internal import KithCrypto

/// What a replica knows of one session.
struct Session {
  let peer: SessionPeer
  /// The member at the other end, once its certificate is known.
  var device: DeviceID?
  /// Its clock less ours, in milliseconds, when it last told it.
  var clockOffsetMilliseconds: Int64
  let openedAt: UInt64
  /// Whether stores are exchanged.
  var isExchanging = false
  /// Whether they are not because the clocks differ.
  var clocksDiffer = false
  /// The number of the last `Have` that asked.
  var haveNumber: UInt64 = 0
  /// When the next full `Have` is due, by the monotonic clock; or, if the clocks differ, when this
  /// device tells its own again.
  var nextHaveAt: UInt64 = .max
  /// Stores whose batch that answers our own first `Have` was applied.
  var pulled: Set<StoreIdentifier> = []
  /// Stores of whose last answer something cannot be judged yet: it is asked for again.
  var unjudged: Set<StoreIdentifier> = []
  /// Stores that await an answer of which a piece cannot be judged yet.
  var unjudgedPieces: Set<StoreIdentifier> = []
  /// Stores whose first `Have` of theirs was answered: new change sets go there at once.
  var answered: Set<StoreIdentifier> = []
  /// What the peer says it covers, or was sent.
  var vectors: [StoreIdentifier: [ChainID: UInt64]] = [:]
  /// Statements that the peer was not sent and did not show that it has.
  var unpassed: Set<StatementName> = []
  /// The new device at the other end, which joins over this session, and what makes it a member.
  var joiner: DeviceID?
  var admission: [Record] = []
  /// Whether this device joins over the session.
  var isInviters = false
  /// All stores that the inviter said it has, once it has listed all.
  var listed: Set<StoreIdentifier>?
  /// Whether all that the inviter listed was pulled.
  var hasPulledAll = false
  /// Stores whose limits differ from ours.
  var mismatched: Set<StoreIdentifier> = []
  /// Stores whose divergence was reported already.
  var diverged: Set<StoreIdentifier> = []
  /// Bytes of records taken from a peer before it proved to be a member, and the certificates among
  /// them, which may be part of that proof.
  var strangerBytesTaken = 0
  var proof: [CheckedRecord] = []
  /// How often all records were sent again, because the peer could not judge something.
  var recordsSentAgain = 0
  /// Whether the peer lacks records that only a member is sent.
  var isOwedRecords = false
  /// The batch whose last part is still to come.
  var partial: Batch?
  var partialBytes = 0
  var partialWeights = AuthorWeights()
  /// Parts of it that cannot be counted.
  var partialTaint = Taint()
  /// A batch that waits for its time, with those that came after it.
  var early: EarlyBatches?
  /// Whether the network takes more.
  var isWritable = true
  /// Bytes of batches that were sent since the network last had room, and whether it was asked to
  /// say when it has again.
  var bytesUnderWay = 0
  var awaitsRoom = false
  /// Otherwise answers wait, and stores fall behind, until it is.
  var takesMore: Bool { isWritable && !awaitsRoom }
  /// What the peer asked for and was not answered yet, or not to the end.
  var waiting: [StoreIdentifier: Waiting] = [:]
  var behind: Set<StoreIdentifier> = []

  /// Whether the peer has not proved to be a member, and may do so.
  var isStranger: Bool { device == nil && joiner == nil }

  init(peer: SessionPeer, openedAt: UInt64, clockOffsetMilliseconds: Int64) {
    self.peer = peer
    self.openedAt = openedAt
    self.clockOffsetMilliseconds = clockOffsetMilliseconds
  }

  /// Whether no answer for a store was applied yet of which everything could be judged.
  func awaits(_ store: StoreIdentifier) -> Bool {
    !pulled.contains(store) || unjudged.contains(store)
  }

  /// Keeps what the peer asked for, instead of what it asked for before. An answer that was begun
  /// goes on: what was sent of it may still be on its way, and is not sent again.
  mutating func wait(_ theirs: StoreHave, number: UInt64) {
    guard case .rest(var answer) = waiting[theirs.store] else {
      waiting[theirs.store] = .asked(theirs, number: number)
      return
    }
    answer.number = number
    if !answer.isEverything { answer.vector.merge(theirs.vector, uniquingKeysWith: max) }
    waiting[theirs.store] = .rest(answer)
  }
}

/// Batches of a session that wait, for the first was published a little ahead of the time.
struct EarlyBatches {
  var first: (batch: Batch, taint: Taint)
  /// Bytes of the first one's change sets.
  var weight: Int
  /// Parts that came since, in order, with their sizes.
  var parts: [(part: BatchPart, size: Int)] = []
  var bytes = 0
  /// When it is looked at again, by the monotonic clock.
  var retryAt: UInt64
}

/// Chains of a batch that may not be counted in the vector, since something of them was rejected
/// or cannot be judged yet.
struct Taint {
  /// Something was rejected that did not even say of which chain it is.
  var isTotal = false
  var chains: Set<ChainID> = []
  var rejected = 0
  /// Whether something cannot be judged yet.
  var isUnjudged = false
  /// Authors of whom the batch held more than is kept.
  var overLimit: Set<DeviceID> = []

  func covers(_ chain: ChainID) -> Bool { isTotal || chains.contains(chain) }
}
