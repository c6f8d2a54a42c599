internal import KithCrypto

extension Replica {
  /// Sends new change sets at once to every peer whose first `Have` of the store was answered, but
  /// not to where they came from, nor to one that has them.
  mutating func push(_ batch: Batch, except source: SessionID?) {
    // Encoded once, for the first session that gets it.
    var encoded: Outbound?
    // More than that goes to each as pieces of its own.
    let isLarge = batch.changeSets.reduce(0) { $0 + $1.weight } > pieceBytes
    for id in sessions.keys.sorted() where id != source {
      guard let session = sessions[id], session.isExchanging,
        session.answered.contains(batch.store), !session.mismatched.contains(batch.store)
      else { continue }
      guard session.takesMore, !isLarge else {
        sessions[id]?.behind.insert(batch.store)
        if session.takesMore { catchUp(id) }
        continue
      }
      let vector = session.vectors[batch.store] ?? [:]
      let isKnown =
        batch.changeSets.allSatisfy { $0.header.sequence <= vector[$0.header.chain] ?? 0 }
        && batch.covers.allSatisfy { $0.through <= vector[$0.chain] ?? 0 }
      if isKnown { continue }
      let messages = encoded ?? outbound(batch)
      encoded = messages
      send(messages, on: id)
    }
  }

  /// Sends the next piece of an answer. The rest waits until the network has room.
  mutating func send(_ answer: Answer, on id: SessionID, evenEmpty: Bool) {
    guard let log = stores[answer.store]?.log else { return }
    var rest = answer
    let (batch, isLast) = rest.nextPiece(of: log, bytes: pieceBytes)
    guard evenEmpty || !batch.isEmpty else { return }
    if answer.number > 0 { sessions[id]?.answered.insert(answer.store) }
    sessions[id]?.waiting[answer.store] = isLast ? nil : .rest(rest)
    send(.stored(batch), on: id, awaitingRoom: !isLast)
  }

  /// A batch that is at hand, as what is sent of it: a large one is read from storage again, where it
  /// is by then.
  private func outbound(_ batch: Batch) -> Outbound {
    let weight = batch.changeSets.reduce(0) { $0 + $1.weight }
    guard weight > Limits.heldBatchBytes, let log = stores[batch.store]?.log else {
      return .ready(batch.messages())
    }
    var stored = StoredBatch(
      store: batch.store, answers: batch.answers, isEverything: batch.isEverything)
    stored.changeSets = batch.changeSets.compactMap { log.changeSets[$0.reference] }
    stored.covers = batch.covers
    return .stored(stored)
  }

  /// A batch as it is sent: encoded, or still in storage.
  private enum Outbound {
    case ready([[UInt8]])
    case stored(StoredBatch)

    var byteCount: Int {
      switch self {
      case .ready(let messages): messages.reduce(0) { $0 + $1.count }
      case .stored(let batch): batch.byteCount
      }
    }
  }

  /// Sends a batch, and nothing behind it once many bytes are under way, until the network says
  /// that little of them is left: it may not even have seen them yet.
  private mutating func send(_ batch: Outbound, on id: SessionID, awaitingRoom: Bool = false) {
    switch batch {
    case .ready(let messages): effects += messages.map { .send(id, $0) }
    case .stored(let batch): effects.append(.sendStored(id, batch))
    }
    sessions[id]?.bytesUnderWay += batch.byteCount
    guard let session = sessions[id], !session.awaitsRoom,
      awaitingRoom || session.bytesUnderWay >= Limits.bytesUnderWay
    else { return }
    sessions[id]?.awaitsRoom = true
    effects.append(.awaitRoom(id))
  }

  // MARK: Back-pressure

  mutating func setWritable(_ isWritable: Bool, _ id: SessionID) {
    sessions[id]?.isWritable = isWritable
    catchUp(id)
  }

  /// Little is left of what was under way.
  mutating func makeRoom(on id: SessionID) {
    sessions[id]?.bytesUnderWay = 0
    sessions[id]?.awaitsRoom = false
    catchUp(id)
  }

  /// As long as the session takes more: what was not answered yet is, and stores that fell behind
  /// are sent what they missed. Every batch is made only now, above what the peer covers by now.
  mutating func catchUp(_ id: SessionID) {
    while let session = sessions[id], session.takesMore,
      let device = session.device ?? session.joiner,
      let identifier = session.waiting.keys.min()
    {
      guard let waiting = sessions[id]?.waiting.removeValue(forKey: identifier) else { return }
      guard !session.mismatched.contains(identifier) else { continue }
      let known = session.vectors[identifier] ?? [:]
      switch waiting {
      case .asked(var theirs, let number):
        let vector = theirs.vector.merging(known, uniquingKeysWith: max)
        if vector != theirs.vector {
          // The digest was of another state.
          (theirs.vector, theirs.digest) = (vector, nil)
        }
        answer(theirs, number: number, on: id, device)
      case .rest(var answer):
        if !answer.isEverything { answer.vector.merge(known, uniquingKeysWith: max) }
        sessions[id]?.behind.remove(identifier)
        send(answer, on: id, evenEmpty: answer.number > 0)
      }
    }
    while let session = sessions[id], session.takesMore, let identifier = session.behind.min() {
      sessions[id]?.behind.remove(identifier)
      guard !session.mismatched.contains(identifier) else { continue }
      let vector = session.vectors[identifier] ?? [:]
      send(Answer(store: identifier, number: 0, vector: vector), on: id, evenEmpty: false)
    }
    planHearsay()
  }
}
