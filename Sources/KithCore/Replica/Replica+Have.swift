internal import KithCrypto

extension Replica {
  /// Asks for missing data of all stores, or only of these.
  mutating func sendHave(on id: SessionID, only identifiers: [StoreIdentifier]? = nil) {
    guard exchanges(id), var link = links[id] else { return }
    let number = link.ask(nextAt: identifiers == nil ? nextHave() : nil)
    links[id] = link
    let listed = (identifiers ?? Array(stores.keys)).sorted().compactMap { identifier in
      var have = stores[identifier]?.have()
      have?.isAwaited = link[identifier].isAwaited
      have?.isUnjudged = link[identifier].isUnjudged
      let isEqual = have?.vector == link[identifier].vector
      links[id]?[identifier].noteDigestSent(isEqual ? stores[identifier]?.revision : nil)
      return have
    }
    var have = Have(
      number: number, isWhole: true, listsAll: identifiers == nil, stores: listed,
      time: clockReading)
    if identifiers == nil { (have.words, have.wordsDigest) = wordsForHave(on: id) }
    for message in have.messages() { effects.append(.send(id, message)) }
    planCoverage()
  }

  private mutating func nextHave() -> UInt64 {
    let jitter = entropy.draw(Digest128.self).bytes.prefix(2).reduce(0) { $0 << 8 | UInt64($1) }
    let quarter = Limits.haveIntervalMilliseconds / 4
    return now.monotonicMilliseconds + Limits.haveIntervalMilliseconds - jitter * quarter / 65_536
  }

  mutating func sendHaves(
    only identifiers: [StoreIdentifier]? = nil, except source: SessionID? = nil
  ) {
    for id in links.keys.sorted() where id != source { sendHave(on: id, only: identifiers) }
  }

  mutating func receive(_ have: Have, on id: SessionID) {
    guard let link = links[id], let device = link.device, link.getsClock else { return }
    if let theirs = have.time, !link.isInviter { judgeClock(theirs, from: device, on: id) }
    guard exchanges(id) else { return }
    guard receiveWords(have.words, digest: have.wordsDigest, on: id) else {
      return end(id, .protocolViolation)
    }
    let have = members.withoutRevoked(have)
    if have.stores.contains(where: \.isUnjudged), links[id]?.maySendRecordsAgain() == true {
      // When the session began, the peer may have had no space for one.
      sendRecords(on: id)
    }
    createStores(have.stores)
    for theirs in have.stores where agreesOnPolicy(theirs, on: id, device) {
      note(theirs, isWhole: have.isWhole, on: id)
      guard have.isWhole else {
        compareStates(of: theirs.store, on: id)
        continue
      }
      compare(theirs, on: id)
      guard have.number > 0 else { continue }
      answer(theirs, number: have.number, on: id, device)
    }
    updateUnseen()
    if have.listsAll {
      noteLeftOut(Set(have.stores.map(\.store)), of: device)
      links[id]?.list(have.stores.map(\.store))
      notePulled(on: id)
    }
    effects.append(.progress)
  }

  // MARK: Digests

  /// Compares digests once vectors are equal, and asks if they differ, so that both sides send
  /// everything (`Docs/Protocol.md`, "State digest").
  private mutating func compare(_ theirs: StoreHave, on id: SessionID) {
    let identifier = theirs.store
    let horizon = min(theirs.horizon, clock.latest)
    var mutations = stores[identifier]?.raiseHorizon(to: horizon) ?? []
    if let digest = theirs.digest, theirs.vector == stores[identifier]?.log.vector {
      links[id]?[identifier].noteCompared()
      let isEqual = stores[identifier]?.digest() == digest
      if isEqual, !theirs.isBelow || coverage.areOthersBelow(in: identifier) {
        mutations += stores[identifier]?.leaveBelow() ?? []
      }
      if !isEqual || theirs.isBelow { compareStates(of: identifier, on: id, isAsked: true) }
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  /// Sends a peer the digest as soon as vectors are equal: once in a session, and after each change
  /// while this device is below its horizon and the peer is not. `isAsked`: the peer waits for it.
  mutating func compareStates(
    of identifier: StoreIdentifier, on id: SessionID, isAsked: Bool = false
  ) {
    guard let link = links[id], link.device != nil, link.isExchanging, !link.isInviter,
      let store = stores[identifier]
    else { return }
    let exchange = link[identifier]
    guard !exchange.isMismatched, exchange.isPulled, exchange.sentRevision != store.revision,
      isAsked || !exchange.isCompared || store.horizon.isBelow && !exchange.isBelow,
      exchange.vector == store.log.vector
    else { return }
    sendHave(on: id, only: [identifier])
  }

  /// Creates stores that only another device has, with its limits.
  mutating func createStores(_ theirs: [StoreHave]) {
    var created: [StoreIdentifier] = []
    for store in theirs where stores[store.store] == nil && stores.count < Limits.stores {
      // Of a later version, which permits more.
      guard store.policy.isWithinBounds else { continue }
      create(store.store, policy: store.policy)
      created.append(store.store)
    }
    if !created.isEmpty { sendHaves(only: created) }
  }

  /// Notes which stores one side does not take, as it has ``Limits/stores``. `theirs` are all that
  /// the other has.
  private mutating func noteLeftOut(_ theirs: Set<StoreIdentifier>, of device: DeviceID) {
    var leftOut = StoresLeftOut()
    if stores.count >= Limits.stores {
      leftOut.here = theirs.filter { stores[$0] == nil }.sorted()
    }
    if theirs.count >= Limits.stores {
      // An empty store is none that anybody misses.
      leftOut.there = stores.filter { name, store in
        !theirs.contains(name) && !(store.log.vector.isEmpty && store.drafts.isEmpty)
      }
      .keys.sorted()
    }
    storesLeftOut[device] = leftOut == StoresLeftOut() ? nil : leftOut
  }

  /// If the limits differ, both sides report it and do not sync the store.
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
        report(
          .policyMismatch(store: theirs.store, peer: device, ours: ours, theirs: theirs.policy))
      }
      return false
    case nil: return false
    }
  }
}

/// The stores that two devices cannot exchange, by name.
struct StoresLeftOut: Equatable {
  /// The other's that this device does not take.
  var here: [StoreIdentifier] = []
  /// This device's that the other does not take.
  var there: [StoreIdentifier] = []
}
