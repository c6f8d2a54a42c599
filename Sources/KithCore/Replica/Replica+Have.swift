internal import KithCrypto

extension Replica {
  /// Asks for what a peer has and we do not: of all stores, or of some that are new.
  mutating func sendHave(on id: SessionID, only identifiers: [StoreIdentifier]? = nil) {
    guard var session = sessions[id], session.isExchanging else { return }
    session.haveNumber += 1
    if identifiers == nil {
      let jitter = entropy.draw(Digest128.self).bytes.prefix(2).reduce(0) { $0 << 8 | UInt64($1) }
      let quarter = Limits.haveIntervalMilliseconds / 4
      session.nextHaveAt =
        now.monotonicMilliseconds + Limits.haveIntervalMilliseconds - jitter * quarter / 65_536
    }
    sessions[id] = session
    let listed = (identifiers ?? Array(stores.keys)).sorted().compactMap { identifier in
      var have = stores[identifier]?.have()
      have?.isAwaited = session.awaits(identifier)
      have?.isUnjudged = session.unjudged.contains(identifier)
      return have
    }
    var have = Have(
      number: session.haveNumber, isWhole: true, listsAll: identifiers == nil, stores: listed,
      time: toldTime)
    have.started = coverage.started ?? .zero
    have.held = coverage.held(of: listed.map(\.store), tellingOn: id)
    for message in have.messages() { effects.append(.send(id, message)) }
  }

  mutating func receive(_ have: Have, on id: SessionID) {
    guard let session = sessions[id], let device = session.device,
      !session.peer.isMembershipOnly
    else { return }
    if let told = have.time, !session.isInviters { judge(told, from: device, on: id) }
    guard exchanges(id) else { return }
    let have = withoutRevoked(have)
    if have.stores.contains(where: \.isUnjudged) { sendRecordsAgain(on: id) }
    adopt(have.stores, from: id)
    for theirs in have.stores where agreesOnPolicy(theirs, on: id, device) {
      note(
        theirs.vector, of: theirs.store, isWhole: have.isWhole, on: id, started: have.started)
      guard have.number > 0, have.isWhole else { continue }
      answer(theirs, number: have.number, on: id, device)
    }
    guard hearCoverage(have, on: id) else { return }
    if have.listsAll, sessions[id]?.isInviters == true {
      sessions[id]?.listed = Set(have.stores.map(\.store))
      notePulled(on: id)
    }
    effects.append(.progress)
  }

  /// Begins stores that only the peer has had so far, under its limits.
  private mutating func adopt(_ theirs: [StoreHave], from id: SessionID) {
    var adopted: [StoreIdentifier] = []
    for store in theirs where stores[store.store] == nil && stores.count < Limits.stores {
      create(store.store, policy: store.policy)
      adopted.append(store.store)
    }
    guard !adopted.isEmpty else { return }
    for other in sessions.keys.sorted() where exchanges(other) {
      sendHave(on: other, only: adopted)
    }
  }

  /// Peers with different limits for a store do not sync it, and both say so.
  mutating func agreesOnPolicy(
    _ theirs: StoreHave, on id: SessionID, _ device: DeviceID
  ) -> Bool {
    guard let ours = stores[theirs.store]?.policy else { return false }
    guard ours != theirs.policy else {
      if sessions[id]?.mismatched.remove(theirs.store) != nil {
        sendHave(on: id, only: [theirs.store])
      }
      return true
    }
    if sessions[id]?.mismatched.insert(theirs.store).inserted == true {
      effects.append(
        .report(
          .policyMismatch(
            store: theirs.store, peer: device, ours: ours, theirs: theirs.policy)))
    }
    return false
  }

  /// Answers with every kept change set above the peer's vector, piece by piece.
  ///
  /// Where the session takes no more for now, the answer waits, unmade, until it does.
  mutating func answer(
    _ theirs: StoreHave, number: UInt64, on id: SessionID, _ device: DeviceID
  ) {
    guard var store = stores[theirs.store], let session = sessions[id] else { return }
    guard session.takesMore else {
      sessions[id]?.wait(theirs, number: number)
      return
    }
    let isFirst = !session.answered.contains(theirs.store)
    var answer = Answer(store: theirs.store, number: number, vector: theirs.vector)
    if theirs.vector == store.log.vector, let digest = theirs.digest, digest != store.digest() {
      (answer.vector, answer.isEverything) = ([:], true)
      // With entries beyond the vector, equal vectors say nothing of the digest: that is no defect,
      // but there may be one behind it.
      if !theirs.isBeyond, !store.log.holdsUncovered,
        sessions[id]?.diverged.insert(theirs.store).inserted == true
      {
        counters.divergences += 1
        effects.append(.report(.divergence(store: theirs.store, peer: device)))
      }
    }
    stores[theirs.store] = store
    // A peer that waits for an answer is answered even if there is nothing to tell.
    sessions[id]?.behind.remove(theirs.store)
    send(answer, on: id, evenEmpty: isFirst || theirs.isAwaited)
  }
}
