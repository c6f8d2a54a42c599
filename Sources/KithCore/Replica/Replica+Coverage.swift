internal import KithCrypto

/// Carries out the decisions of ``Coverage``.
extension Replica {
  // MARK: Sessions

  mutating func beginCoverage(on id: SessionID, with device: DeviceID, isMember: Bool) {
    guard let process = links[id]?.peer.hello.process else { return }
    coverage.begin(id, with: device, process: process.shortName, isMember: isMember)
    planCoverage()
  }

  /// The words' parts of a full `Have`. Each process makes a word before its first one, because it
  /// may cover less than the process before it.
  mutating func wordsForHave(on id: SessionID) -> (words: [WordGroup], digest: Digest128?) {
    let stores = stores
    coverage.look(at: stores.keys) { stores[$0].map(Coverage.Own.init) }
    return coverage.wordsForHave(on: id, at: now)
  }

  // MARK: Own coverage

  /// Makes a word due, and compares the kept ones again.
  mutating func vectorChanged(in identifier: StoreIdentifier) {
    coverage.noteChange(of: identifier, at: now.monotonicMilliseconds)
    planCoverage()
  }

  /// Sends peers the vector entries that changed.
  mutating func sendChangedVectors() {
    var changed: [StoreHave] = []
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], !store.unsentChains.isEmpty || store.isHorizonUnsent
      else {
        continue
      }
      stores[identifier]?.unsentChains = []
      stores[identifier]?.isHorizonUnsent = false
      vectorChanged(in: identifier)
      var have = StoreHave(
        store: identifier, vector: store.log.vector.filter { store.unsentChains.contains($0.key) },
        digest: nil, policy: store.policy)
      have.isBelow = store.horizon.isBelow
      changed.append(have)
    }
    guard !changed.isEmpty else { return }
    let messages = Have(
      number: 0, isWhole: false, listsAll: false, stores: changed, time: clockReading
    )
    .messages()
    for id in links.keys.sorted() where exchanges(id) {
      for message in messages { effects.append(.send(id, message)) }
    }
  }

  mutating func planCoverage() {
    guard coverage.needsTime(at: now.monotonicMilliseconds) else { return }
    let jitter = UInt64(entropy.draw(Digest128.self).bytes[0])
    coverage.setTime(at: now.monotonicMilliseconds, jitter: jitter)
  }

  /// Makes and passes on due words.
  mutating func passOnWords() {
    guard let due = coverage.dueAt, due <= now.monotonicMilliseconds else { return }
    let (stores, links) = (stores, links)
    let (outbound, isNews) = coverage.passOnWords(
      at: now,
      canSend: { links[$0]?.isExchanging == true && links[$0]?.canSend == true },
      stores: stores.keys, own: { stores[$0].map(Coverage.Own.init) })
    for group in outbound {
      for message in Have.messages(of: group.words, time: clockReading) {
        effects.append(.send(group.session, message))
      }
    }
    if isNews { effects.append(.progress) }
    planCoverage()
  }

  /// Makes this device's word of its present coverage, and compares others' words with that
  /// coverage.
  mutating func makeCarrierWord() {
    let stores = stores
    coverage.look(at: stores.keys) { stores[$0].map(Coverage.Own.init) }
    coverage.makeWord(at: now, isPaced: false)
    planCoverage()
  }

  // MARK: Received words and coverage

  /// Applies words that a peer or a carrier brought. Returns false if one is forged.
  mutating func receiveWords(
    _ words: [WordGroup], digest: Digest128? = nil, on id: SessionID? = nil
  ) -> Bool {
    let wasSilenced = coverage.isSilenced
    defer { planCoverage() }
    guard
      coverage.receive(
        words, digest: digest, on: id, at: now.monotonicMilliseconds, with: repeater)
    else { return false }
    // Somebody else has this device's key.
    if coverage.isSilenced, !wasSilenced { report(.clone(keys.id)) }
    return true
  }

  /// Notes a peer's coverage.
  mutating func note(_ theirs: StoreHave, isWhole: Bool, on id: SessionID) {
    guard let chains = stores[theirs.store]?.log.chains else { return }
    links[id]?.note(theirs.vector, of: theirs.store, isWhole: isWhole) { chains[$0] != nil }
    links[id]?[theirs.store].isBelow = theirs.isBelow
    let extent = Coverage.Extent(
      vector: links[id]?[theirs.store].vector ?? [:], isBelow: theirs.isBelow)
    coverage.receive(extent, of: theirs.store, isWhole: isWhole, on: id) { chains[$0] != nil }
  }

  // MARK: Removals

  /// Forgets removals above the limit; ``StoreReplica`` has the rule.
  mutating func pruneRemovals(of identifier: StoreIdentifier) -> [Mutation] {
    guard stores[identifier]?.hasExcessRemovals(removalLimit) == true else { return [] }
    return stores[identifier]?.pruneRemovals(
      limit: removalLimit, coveredByAll: coverage.coveredByAllOthers(of: identifier),
      lacking: coverage.lacking(of: identifier)) ?? []
  }

  /// Removes devices from ``Horizon/unseen`` once they cover everything or are no members any more.
  mutating func updateUnseen() {
    var mutations: [Mutation] = []
    for identifier in stores.keys.sorted() {
      guard let store = stores[identifier], !store.horizon.unseen.isEmpty else { continue }
      let vector = store.log.vector
      let left = store.horizon.unseen.filter {
        roster.isMember($0) && !coverage.covers(vector, of: identifier, $0)
      }
      mutations += stores[identifier]?.setUnseen(left) ?? []
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  /// Without other members, no device is left that could know what was removed.
  mutating func leaveBelowIfAlone() {
    guard coverage.isAlone else { return }
    var mutations: [Mutation] = []
    for identifier in stores.keys.sorted() {
      mutations += stores[identifier]?.leaveBelow() ?? []
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  // MARK: Left behind

  mutating func findLeftBehind() {
    let stores = stores
    let behind = coverage.findLeftBehind(
      at: now.monotonicMilliseconds, connected: Set(links.values.compactMap(\.device)),
      vectors: { stores.mapValues(\.log.vector) })
    if let behind { effects.append(.leftBehind(behind)) }
  }
}
