internal import KithCrypto

extension Link {
  var takesMore: Bool { flow.takesMore }

  // MARK: Answers

  /// A piece of an answer, as it is sent.
  struct Piece {
    var batch: StoredBatch
    /// Whether the network is to say when it has room.
    var asksForRoom: Bool
  }

  /// The data that a peer is sent when it asks.
  enum OnAsk {
    /// Nothing for now: the session takes no more.
    case waits
    /// Nothing: the peer has all, and does not wait for an answer.
    case nothing
    case piece(Piece)
    /// Everything, for states differ although vectors are equal. `isNews`: that is a defect, and
    /// was not reported in this session yet.
    case everything(Piece?, isNews: Bool)
  }

  /// Answers with every kept change set above the peer's vector, piece by piece; if the session takes
  /// no more, later. `digest`: the state's, if the peer's vector is ours and it told a digest.
  mutating func answer(
    _ theirs: StoreHave, number: UInt64, from log: ChangeSetLog, digest: Digest256?,
    pieceBytes: Int
  ) -> OnAsk {
    guard takesMore else {
      owe(theirs, number: number)
      return .waits
    }
    // A peer that waits for an answer is answered even if there is nothing to tell.
    let evenEmpty = !self[theirs.store].isAnswered || theirs.isAwaited
    self[theirs.store].owed = nil
    let differs = digest != nil && digest != theirs.digest
    let answer = Answer(
      store: theirs.store, number: number, isEverything: differs, above: theirs.vector)
    let piece = piece(of: answer, from: log, bytes: pieceBytes, evenEmpty: evenEmpty)
    guard differs else { return piece.map(OnAsk.piece) ?? .nothing }
    // If entries beyond the vector exist, equal vectors may have different digests. That is no
    // defect, though it may hide one.
    let isNews = !theirs.isBeyond && !log.holdsUncovered && !self[theirs.store].hasDiverged
    if isNews { self[theirs.store].hasDiverged = true }
    return .everything(piece, isNews: isNews)
  }

  /// Takes the next piece of an answer. The rest is owed.
  mutating func piece(
    of answer: Answer, from log: ChangeSetLog, bytes: Int, evenEmpty: Bool
  ) -> Piece? {
    var rest = answer
    let batch = rest.nextPiece(of: log, bytes: bytes)
    guard evenEmpty || !batch.isEmpty || !answer.sent.isEmpty else { return nil }
    if answer.number > 0 { self[answer.store].isAnswered = true }
    self[answer.store].owed = batch.isUnfinished ? .rest(rest) : nil
    return Piece(
      batch: batch, asksForRoom: flow.sent(batch.byteCount, isUnfinished: batch.isUnfinished))
  }

  /// Keeps the peer's question instead of its earlier one. An answer that was begun goes on: its
  /// earlier pieces may still be on their way, and are not sent again.
  private mutating func owe(_ theirs: StoreHave, number: UInt64) {
    guard case .rest(var answer)? = self[theirs.store].owed else {
      self[theirs.store].owed = .asked(theirs, number: number)
      return
    }
    answer.number = number
    answer.raise(to: theirs.vector)
    self[theirs.store].owed = .rest(answer)
  }

  // MARK: Pushes

  /// The fate of a batch that is pushed.
  enum OnPush {
    /// The peer has it, or does not exchange the store.
    case nothing
    case send
    /// It was left out: the store is owed.
    case owed
  }

  /// New change sets go at once to a peer whose first `Have` of the store was answered; if
  /// `isInPieces`, as an answer goes.
  mutating func push(_ batch: Batch, isInPieces: Bool) -> OnPush {
    let exchange = self[batch.store]
    guard isExchanging, exchange.isAnswered, !exchange.isMismatched else { return .nothing }
    guard takesMore, !isInPieces else {
      oweMissed(batch.store)
      return .owed
    }
    let isKnown =
      batch.changeSets.allSatisfy {
        $0.header.sequence <= exchange.vector[$0.header.chain] ?? 0
      } && batch.covers.allSatisfy { $0.through <= exchange.vector[$0.chain] ?? 0 }
    return isKnown ? .nothing : .send
  }

  private mutating func oweMissed(_ store: StoreIdentifier) {
    if self[store].owed == nil { self[store].owed = .missed }
  }

  /// Entries were carried over, so covers, which were left out before, are sent again. The peer is
  /// owed everything above its vector, even if parts of it were sent before. Returns whether the
  /// peer is owed anything.
  mutating func oweAgain(_ store: StoreIdentifier) -> Bool {
    guard isExchanging, self[store].isAnswered else { return false }
    if case .rest(let answer)? = self[store].owed {
      self[store].owed = .rest(
        Answer(
          store: store, number: answer.number, isEverything: answer.isEverything,
          above: self[store].vector))
    }
    oweMissed(store)
    return true
  }

  // MARK: Owed data

  /// The data to send next on a session that takes more.
  enum Due {
    case answer(StoreHave, number: UInt64)
    case piece(Answer)
  }

  /// Takes the data that is owed next, above the peer's coverage by now: answers before pushes, in
  /// order of stores. Nil if nothing is owed, or the session takes no more.
  mutating func nextDue() -> Due? {
    while takesMore, let store = nextOwed {
      guard let owed = self[store].owed else { return nil }
      self[store].owed = nil
      if self[store].isMismatched { continue }
      let known = self[store].vector
      switch owed {
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

  private var nextOwed: StoreIdentifier? {
    var (asked, missed): (StoreIdentifier?, StoreIdentifier?)
    for (store, exchange) in stores {
      switch exchange.owed {
      case nil: break
      case .missed: missed = min(missed ?? store, store)
      case .asked, .rest: asked = min(asked ?? store, store)
      }
    }
    return asked ?? missed
  }
}
