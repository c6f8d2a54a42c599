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
      have?.statements = hearsay.table.digest(of: identifier)
      return have
    }
    let have = Have(
      number: session.haveNumber, isWhole: true, listsAll: identifiers == nil, stores: listed,
      time: toldTime)
    for message in have.messages() { effects.append(.send(id, message)) }
  }

  /// Tells peers what is covered now, of the chains that changed since they were told.
  mutating func tellProgress() {
    var told: [StoreHave] = []
    for identifier in stores.keys.sorted() {
      guard let chains = stores[identifier]?.untold, !chains.isEmpty else { continue }
      stores[identifier]?.noteRisen()
      vectorChanged(in: identifier)
      if let have = stores[identifier]?.have(only: chains) { told.append(have) }
    }
    guard !told.isEmpty else { return }
    let messages = Have(
      number: 0, isWhole: false, listsAll: false, stores: told, time: toldTime
    ).messages()
    for id in sessions.keys.sorted() where exchanges(id) {
      for message in messages { effects.append(.send(id, message)) }
    }
  }

  mutating func receive(_ have: Have, on id: SessionID) {
    guard let session = sessions[id], let device = session.device,
      !session.peer.isMembershipOnly
    else { return }
    if let told = have.time, !session.isInviters { judge(told, from: device, on: id) }
    guard exchanges(id) else { return }
    let have = withoutRevoked(have)
    hear(have.statements, on: id)
    if have.stores.contains(where: \.isUnjudged) { sendRecordsAgain(on: id) }
    adopt(have.stores, from: id)
    for theirs in have.stores where agreesOnPolicy(theirs, on: id, device) {
      note(theirs, isWhole: have.isWhole, on: id)
      compareHearsay(theirs, on: id)
      guard have.number > 0, have.isWhole else { continue }
      answer(theirs, number: have.number, on: id, device)
    }
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

  /// Remembers what the peer covers.
  mutating func note(
    _ theirs: StoreHave, isWhole: Bool, on id: SessionID
  ) {
    var vector = theirs.vector
    if !isWhole {
      vector.merge(sessions[id]?.vectors[theirs.store] ?? [:], uniquingKeysWith: max)
    }
    let others = sessions[id]?.vectors.reduce(0) { sum, other in
      sum + (other.key == theirs.store ? 0 : other.value.count)
    }
    if vector.count + (others ?? 0) > Limits.vectorEntriesPerSession {
      let chains = stores[theirs.store]?.log.chains ?? [:]
      vector = vector.filter { chains[$0.key] != nil }
    }
    if vector.count <= Limits.chainsPerStore { sessions[id]?.vectors[theirs.store] = vector }
    know(of: theirs.store, on: id, isWhole: isWhole)
  }

  /// Remembers, also for when the peer is away, what it covers of the chains that we know: what it
  /// says of others helps nobody and would be kept for ever. What it says of the whole counts
  /// instead of all before, for it may have been restored and cover less.
  mutating func know(of identifier: StoreIdentifier, on id: SessionID, isWhole: Bool) {
    guard let session = sessions[id], let device = session.device,
      let chains = stores[identifier]?.log.chains
    else { return }
    let vector = session.vectors[identifier, default: [:]].filter { chains[$0.key] != nil }
    let process = session.peer.hello.process.tag
    let isSame = hearsay.processes[device]?[identifier] == process
    hearsay.processes[device, default: [:]][identifier] = process
    if isWhole || !isSame {
      knowledge[device, default: [:]][identifier] = vector
    } else {
      knowledge[device, default: [:]][identifier, default: [:]]
        .merge(vector, uniquingKeysWith: max)
    }
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
