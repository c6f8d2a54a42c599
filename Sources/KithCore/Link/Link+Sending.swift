internal import KithCrypto

extension Link {
  var canSend: Bool { flow.canSend }

  // MARK: Answers

  struct Piece {
    var batch: StoredBatch
    var asksForDrain: Bool
  }

  /// The answer to a `Have`.
  enum OnAsk {
    /// The session takes no more now.
    case waits
    /// The peer has all, and awaits no answer.
    case nothing
    case piece(Piece)
    /// Everything: vectors are equal, states differ. `isNews`: a defect, not yet reported in this
    /// session.
    case everything(Piece?, isNews: Bool)
  }

  /// Answers with the change sets above the peer's vector, in pieces. `digest`: our state's, if
  /// vectors are equal and the peer sent its own. `isExpected`: they may differ, since removals
  /// were forgotten.
  mutating func answer(
    _ theirs: StoreHave, number: UInt64, from log: ChangeSetLog, digest: Digest256?,
    isExpected: Bool = false, pieceBytes: Int
  ) -> OnAsk {
    guard canSend else {
      queueAnswer(theirs, number: number)
      return .waits
    }
    // A waiting peer gets even an empty answer.
    let evenEmpty = !self[theirs.store].isAnswered || theirs.isAwaited
    self[theirs.store].pending = nil
    let differs = digest != nil && digest != theirs.digest
    var answer = Answer(
      store: theirs.store, number: number, isEverything: differs, above: theirs.vector)
    answer.isEmpty = digest != nil && !differs
    let piece = piece(of: answer, from: log, bytes: pieceBytes, evenEmpty: evenEmpty)
    guard differs else { return piece.map(OnAsk.piece) ?? .nothing }
    // Entries beyond the vector may explain the digests, though they may hide a defect.
    let isNews =
      !theirs.isBeyond && !log.holdsUncovered && !isExpected && !self[theirs.store].hasDiverged
    if isNews { self[theirs.store].hasDiverged = true }
    return .everything(piece, isNews: isNews)
  }

  /// Takes an answer's next piece, and queues the rest.
  mutating func piece(
    of answer: Answer, from log: ChangeSetLog, bytes: Int, evenEmpty: Bool
  ) -> Piece? {
    var rest = answer
    let batch = rest.nextPiece(of: log, bytes: bytes)
    guard evenEmpty || !batch.isEmpty || !answer.sent.isEmpty else { return nil }
    if answer.number > 0 { self[answer.store].isAnswered = true }
    self[answer.store].pending = batch.isUnfinished ? .rest(rest) : nil
    return Piece(
      batch: batch, asksForDrain: flow.sent(batch.byteCount, isUnfinished: batch.isUnfinished))
  }

  /// Replaces the peer's earlier question. An unfinished answer goes on, since its pieces may be on
  /// their way and are not sent again.
  private mutating func queueAnswer(_ theirs: StoreHave, number: UInt64) {
    guard case .rest(var answer)? = self[theirs.store].pending else {
      self[theirs.store].pending = .asked(theirs, number: number)
      return
    }
    answer.number = number
    answer.raise(to: theirs.vector)
    self[theirs.store].pending = .rest(answer)
  }

  // MARK: Pushes

  enum OnPush {
    /// The peer has it, or does not exchange the store.
    case nothing
    case send
    /// Not sent now: the store is queued.
    case queued
  }

  /// Pushes to a peer whose first `Have` was answered. If `isInPieces`, queues the store instead.
  mutating func push(_ batch: Batch, isInPieces: Bool) -> OnPush {
    let exchange = self[batch.store]
    guard isExchanging, exchange.isAnswered, !exchange.isMismatched else { return .nothing }
    guard canSend, !isInPieces else {
      queueMissed(batch.store)
      return .queued
    }
    let isKnown =
      batch.changeSets.allSatisfy {
        $0.header.sequence <= exchange.vector[$0.header.chain] ?? 0
      } && batch.covers.allSatisfy { $0.through <= exchange.vector[$0.chain] ?? 0 }
    return isKnown ? .nothing : .send
  }

  private mutating func queueMissed(_ store: StoreIdentifier) {
    if self[store].pending == nil { self[store].pending = .missed }
  }

  /// Called after carrying over, when covers are sent again. Queues everything above the peer's
  /// vector, even parts sent before. Returns whether it did.
  mutating func queueAgain(_ store: StoreIdentifier) -> Bool {
    guard isExchanging, self[store].isAnswered else { return false }
    if case .rest(let answer)? = self[store].pending {
      self[store].pending = .rest(
        Answer(
          store: store, number: answer.number, isEverything: answer.isEverything,
          above: self[store].vector))
    }
    queueMissed(store)
    return true
  }

  // MARK: Pending data

  enum Due {
    case answer(StoreHave, number: UInt64)
    case piece(Answer)
  }

  /// Takes the next pending data above the peer's coverage: answers before pushes, by store. Nil if
  /// there is none, or the session takes no more.
  mutating func nextDue() -> Due? {
    while canSend, let store = nextPending {
      guard let pending = self[store].pending else { return nil }
      self[store].pending = nil
      if self[store].isMismatched { continue }
      let known = self[store].vector
      switch pending {
      case .asked(var theirs, let number):
        let vector = theirs.vector.merging(known, uniquingKeysWith: max)
        if vector != theirs.vector {
          // The digest was of another state.
          (theirs.vector, theirs.digest) = (vector, nil)
        }
        return .answer(theirs, number: number)
      case .rest(var answer):
        answer.raise(to: known)
        return .piece(answer)
      case .missed: return .piece(Answer(store: store, number: 0, above: known))
      }
    }
    return nil
  }

  private var nextPending: StoreIdentifier? {
    var (asked, missed): (StoreIdentifier?, StoreIdentifier?)
    for (store, exchange) in stores {
      switch exchange.pending {
      case nil: break
      case .missed: missed = min(missed ?? store, store)
      case .asked, .rest: asked = min(asked ?? store, store)
      }
    }
    return asked ?? missed
  }
}

/// Whether a session takes more. A batch that it does not take is not queued, but made again later
/// (`Docs/Decisions/batches-and-covers.md`).
struct Flow {
  private var isWritable = true
  /// Bytes of batches sent since the network was last drained.
  private var bytesUnderWay = 0
  /// Whether the network was asked to report that it is drained.
  private var awaitsDrain = false

  var canSend: Bool { isWritable && !awaitsDrain }

  mutating func set(isWritable: Bool) { self.isWritable = isWritable }

  /// Few of the bytes under way are left.
  mutating func noteDrained() { (bytesUnderWay, awaitsDrain) = (0, false) }

  /// Counts a sent batch. Returns whether to ask the network to report that it is drained: after
  /// many bytes, or an unfinished piece.
  mutating func sent(_ bytes: Int, isUnfinished: Bool = false) -> Bool {
    bytesUnderWay += bytes
    guard !awaitsDrain, isUnfinished || bytesUnderWay >= Limits.bytesUnderWay else { return false }
    awaitsDrain = true
    return true
  }
}

/// A batch for peers. A large one is read from storage when it is sent, after its commit.
enum OutboundBatch {
  case ready([[UInt8]])
  case stored(StoredBatch)

  init(_ batch: Batch, from log: ChangeSetLog?) {
    guard batch.weight > Limits.readyBatchBytes, let log else {
      self = .ready(batch.messages())
      return
    }
    var stored = StoredBatch(
      store: batch.store, answers: batch.answers, isEverything: batch.isEverything)
    stored.changeSets = batch.changeSets.compactMap { log.changeSets[$0.reference] }
    (stored.covers, stored.horizon) = (batch.covers, batch.horizon)
    self = .stored(stored)
  }

  var byteCount: Int {
    switch self {
    case .ready(let messages): messages.reduce(0) { $0 + $1.count }
    case .stored(let batch): batch.byteCount
    }
  }

  /// A batch that is read from storage never goes early.
  func effects(on session: SessionID, isEarly: Bool) -> [Effect] {
    switch self {
    case .ready(let messages):
      messages.map { isEarly ? .sendEarly(session, $0) : .send(session, $0) }
    case .stored(let batch): [.sendStored(session, batch)]
    }
  }
}
