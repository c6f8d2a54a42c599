internal import KithCrypto

extension Replica {
  /// Asks for what a peer has and we do not: of all stores, or of some that are new.
  mutating func sendHave(on id: SessionID, only identifiers: [StoreIdentifier]? = nil) {
    guard exchanges(id), var link = links[id] else { return }
    let number = link.ask(nextAt: identifiers == nil ? nextHave() : nil)
    links[id] = link
    let listed = (identifiers ?? Array(stores.keys)).sorted().compactMap { identifier in
      var have = stores[identifier]?.have()
      have?.isAwaited = link[identifier].isAwaited
      have?.isUnjudged = link[identifier].isUnjudged
      have?.statements = hearsay.table.digest(of: identifier)
      return have
    }
    let have = Have(
      number: number, isWhole: true, listsAll: identifiers == nil, stores: listed,
      time: toldTime)
    for message in have.messages() { effects.append(.send(id, message)) }
  }

  /// When the next full `Have` is due.
  private mutating func nextHave() -> UInt64 {
    let jitter = entropy.draw(Digest128.self).bytes.prefix(2).reduce(0) { $0 << 8 | UInt64($1) }
    let quarter = Limits.haveIntervalMilliseconds / 4
    return now.monotonicMilliseconds + Limits.haveIntervalMilliseconds - jitter * quarter / 65_536
  }

  /// Asks all peers with which stores are exchanged.
  mutating func sendHaves(
    only identifiers: [StoreIdentifier]? = nil, except source: SessionID? = nil
  ) {
    for id in links.keys.sorted() where id != source { sendHave(on: id, only: identifiers) }
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
    for id in links.keys.sorted() where exchanges(id) {
      for message in messages { effects.append(.send(id, message)) }
    }
  }

  mutating func receive(_ have: Have, on id: SessionID) {
    guard let link = links[id], let device = link.device, link.isToldTime else { return }
    if let told = have.time, !link.isInviter { judge(told, from: device, on: id) }
    guard exchanges(id) else { return }
    let have = members.withoutRevoked(have)
    hear(have.statements, on: id)
    if have.stores.contains(where: \.isUnjudged), links[id]?.maySendRecordsAgain() == true {
      // They went out when the session began, but the peer may have had no room for one then.
      sendRecords(on: id)
    }
    adopt(have.stores)
    for theirs in have.stores where agreesOnPolicy(theirs, on: id, device) {
      note(theirs, isWhole: have.isWhole, on: id)
      compareHearsay(theirs, on: id)
      guard have.number > 0, have.isWhole else { continue }
      answer(theirs, number: have.number, on: id, device)
    }
    if have.listsAll {
      links[id]?.list(have.stores.map(\.store))
      notePulled(on: id)
    }
    effects.append(.progress)
  }

  /// Begins stores that only the peer has had so far, under its limits.
  private mutating func adopt(_ theirs: [StoreHave]) {
    var adopted: [StoreIdentifier] = []
    for store in theirs where stores[store.store] == nil && stores.count < Limits.stores {
      create(store.store, policy: store.policy)
      adopted.append(store.store)
    }
    if !adopted.isEmpty { sendHaves(only: adopted) }
  }

  /// Peers with different limits for a store do not sync it, and both say so.
  mutating func agreesOnPolicy(
    _ theirs: StoreHave, on id: SessionID, _ device: DeviceID
  ) -> Bool {
    guard let ours = stores[theirs.store]?.policy else { return false }
    switch links[id]?.compare(theirs, with: ours) {
    case .same: return true
    case .sameAgain:
      sendHave(on: id, only: [theirs.store])
      return true
    case .differs(let isNews):
      if isNews {
        effects.append(
          .report(
            .policyMismatch(
              store: theirs.store, peer: device, ours: ours, theirs: theirs.policy)))
      }
      return false
    case nil: return false
    }
  }

  /// Remembers what the peer covers.
  mutating func note(_ theirs: StoreHave, isWhole: Bool, on id: SessionID) {
    let chains = stores[theirs.store]?.log.chains ?? [:]
    links[id]?.note(theirs, isWhole: isWhole) { chains[$0] != nil }
    know(of: theirs.store, on: id, isWhole: isWhole)
  }

  /// Remembers, also for when the peer is away, what it covers of the chains that we know: what it
  /// says of others helps nobody and would be kept for ever. What it says of the whole counts
  /// instead of all before, for it may have been restored and cover less.
  mutating func know(of identifier: StoreIdentifier, on id: SessionID, isWhole: Bool) {
    guard let link = links[id], let device = link.device,
      let chains = stores[identifier]?.log.chains
    else { return }
    let vector = link[identifier].vector.filter { chains[$0.key] != nil }
    let process = link.peer.hello.process.tag
    let isSame = hearsay.processes[device]?[identifier] == process
    hearsay.processes[device, default: [:]][identifier] = process
    if isWhole || !isSame {
      knowledge[device, default: [:]][identifier] = vector
    } else {
      knowledge[device, default: [:]][identifier, default: [:]]
        .merge(vector, uniquingKeysWith: max)
    }
  }
}
