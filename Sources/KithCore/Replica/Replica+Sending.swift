internal import KithCrypto

extension Replica {
  /// Sends new change sets at once to every peer whose first `Have` of the store was answered, but
  /// not to where they came from, nor to one that has them.
  mutating func push(_ batch: Batch, except source: SessionID?) {
    // Encoded once, for the first session that gets it.
    var encoded: [OutboundMessage]?
    for id in sessions.keys.sorted() where id != source {
      guard let session = sessions[id], session.isExchanging,
        session.answered.contains(batch.store), !session.mismatched.contains(batch.store)
      else { continue }
      guard session.takesMore else {
        sessions[id]?.behind.insert(batch.store)
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

  mutating func send(_ batch: StoredBatch, on id: SessionID) {
    send(batch.messages().map(OutboundMessage.stored), on: id)
  }

  /// A batch that is at hand as messages: a large one is read from storage again, where it is by then.
  private func outbound(_ batch: Batch) -> [OutboundMessage] {
    let weight = batch.changeSets.reduce(0) { $0 + $1.weight }
    guard weight > Limits.heldBatchBytes, let log = stores[batch.store]?.log else {
      return batch.messages().map(OutboundMessage.ready)
    }
    let stored = StoredBatch(
      store: batch.store, answers: batch.answers, isEverything: batch.isEverything,
      changeSets: batch.changeSets.compactMap { log.changeSets[$0.reference] },
      covers: batch.covers)
    return stored.messages().map(OutboundMessage.stored)
  }

  /// A message of a batch, encoded or still in storage.
  private enum OutboundMessage {
    case ready([UInt8])
    case stored(StoredMessage)

    var byteCount: Int {
      switch self {
      case .ready(let bytes): bytes.count
      case .stored(let message): message.byteCount
      }
    }

    func effect(on id: SessionID) -> Effect {
      switch self {
      case .ready(let bytes): .send(id, bytes)
      case .stored(let message): .sendStored(id, message)
      }
    }
  }

  /// Sends a batch, and nothing behind it once many bytes are under way, until the network says
  /// that little of them is left: it may not even have seen them yet.
  private mutating func send(_ batch: [OutboundMessage], on id: SessionID) {
    effects += batch.map { $0.effect(on: id) }
    sessions[id]?.bytesUnderWay += batch.reduce(0) { $0 + $1.byteCount }
    guard let session = sessions[id], session.bytesUnderWay >= Limits.bytesUnderWay,
      !session.awaitsRoom
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
  private mutating func catchUp(_ id: SessionID) {
    while let session = sessions[id], session.takesMore,
      let device = session.device ?? session.joiner,
      let identifier = session.waiting.keys.min()
    {
      guard let asked = sessions[id]?.waiting.removeValue(forKey: identifier) else { return }
      guard !session.mismatched.contains(identifier) else { continue }
      var theirs = asked.have
      let vector = theirs.vector.merging(session.vectors[identifier] ?? [:], uniquingKeysWith: max)
      if vector != theirs.vector {
        // The digest was of another state.
        (theirs.vector, theirs.digest) = (vector, nil)
      }
      answer(theirs, number: asked.number, on: id, device)
    }
    while let session = sessions[id], session.takesMore, let identifier = session.behind.min() {
      sessions[id]?.behind.remove(identifier)
      guard let store = stores[identifier], !session.mismatched.contains(identifier) else {
        continue
      }
      let batch = Self.batch(of: store, above: session.vectors[identifier] ?? [:])
      if !batch.isEmpty { send(batch, on: id) }
    }
    planHearsay()
  }
}
