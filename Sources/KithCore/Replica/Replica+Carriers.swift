internal import KithCrypto

/// ``Carrier`` has the rules. It gets the replica's data here, and its outcomes become effects.
extension Replica {
  package var objectOpener: ObjectOpener {
    ObjectOpener(
      account: account, carrierKeys: carrierKeys, keys: keys, epochs: keyring.newestFirst,
      entries: entryOpener)
  }

  /// Nil: this device lacks the genesis record, and uses no carrier.
  package var carrierKeys: CarrierKeys? { members.carrierKeys }

  mutating func handle(_ event: CarrierEvent, of id: CarrierID) {
    let moment = now.monotonicMilliseconds
    switch event {
    case .attached(let shortest): attach(id, shortest)
    case .removed: remove(id)
    case .asked:
      carriers[id]?.isAsked = true
      carriers[id]?.schedule?.ask(at: moment)
    case .stopping:
      carriers[id]?.isStopping = true
      carriers[id]?.schedule?.ask(at: moment)
    case .changed: carriers[id]?.schedule?.noteChange(at: moment)
    case .listed(let listing):
      guard let carrierKeys else { break }
      let reader = carrierReader()
      if carriers[id]?.listed(listing, carrierKeys, reader) == true {
        applyWaiting(id, reader)
        getNext(id)
      }
    case .got(let name, let object): get(name, object, from: id)
    case .stored(let name, let bytes):
      if carriers[id]?.stored(name, bytes: bytes) == true { putNext(id) }
    case .deleted:
      if let isLast = carriers[id]?.deleted() { isLast ? endTurn(id) : putLacking(id) }
    case .failed(let retryAfter):
      carriers[id]?.fail(retryAfter: retryAfter, at: moment)
      effects.append(.carrier(id, .rest))
      effects.append(.progress)
    }
    saveObjects(of: id)
    beginDueTurns()
  }

  private mutating func attach(_ id: CarrierID, _ shortest: UInt64) {
    let moment = now.monotonicMilliseconds
    carriers[id, default: Carrier()].attach(shortestMilliseconds: shortest, at: moment)
    carriersSince = carriersSince ?? moment
  }

  private mutating func remove(_ id: CarrierID) {
    carriers[id]?.forgetAll()
    saveObjects(of: id)
    carriers[id] = nil
    effects.append(.progress)
  }

  private mutating func saveObjects(of id: CarrierID) {
    guard let mutations = carriers[id]?.objects.save(of: id), !mutations.isEmpty else { return }
    effects.append(.persist(mutations))
  }

  /// Covered data may be lost, so the device reads everything again.
  mutating func forgetObjects() {
    for id in carriers.keys.sorted() {
      carriers[id]?.forgetAll()
      saveObjects(of: id)
    }
  }

  // MARK: Turns

  /// Whether turns begin.
  var usesCarriers: Bool {
    !isRevoked && !isJoining && roster.isMember(keys.id) && incarnations.current != nil
      && carrierKeys != nil
  }

  mutating func beginDueTurns() {
    guard usesCarriers else { return }
    for id in carriers.keys.sorted() {
      guard let due = carriers[id]?.dueAt, due <= now.monotonicMilliseconds else { continue }
      carriers[id]?.begin()
      effects.append(.carrier(id, .list))
    }
  }

  /// When the next turn is due.
  var carriersDueAt: UInt64? {
    usesCarriers ? carriers.values.lazy.compactMap(\.dueAt).min() : nil
  }

  private mutating func carrierReader() -> CarrierReader {
    var digests: [StoreIdentifier: Digest256] = [:]
    for identifier in stores.keys { digests[identifier] = stores[identifier]?.digest() }
    return carrierReader(digests)
  }

  /// Without digests it can tell what objects bring, and not whether they tell its state.
  func carrierReader(_ digests: [StoreIdentifier: Digest256]) -> CarrierReader {
    CarrierReader(
      device: keys.id,
      stores: stores.reduce(into: [:]) { own, store in
        own[store.key] = CarrierReader.Own(store.value, digests[store.key], coverage)
      },
      roster: roster, epoch: keyring.current,
      timeKeeper: timeKeeper, isWithholding: holdsWithheld)
  }

  private mutating func objectAuthor() -> ObjectAuthor? {
    guard let carrierKeys else { return nil }
    return ObjectAuthor(
      account: account, carrierKeys: carrierKeys, keys: keys, reader: carrierReader(),
      logs: stores.mapValues(\.log), objectBytes: min(Limits.objectContentBytes, pieceBytes),
      levelBytes: levelBytes)
  }

  // MARK: Getting

  private mutating func getNext(_ id: CarrierID) {
    let reader = carrierReader()
    if let names = carriers[id]?.nextGets(reader), !names.isEmpty {
      effects.append(.carrier(id, .get(names)))
    } else {
      publish(for: id)
    }
  }

  private mutating func get(_ name: ObjectName, _ object: OpenedObject?, from id: CarrierID) {
    guard carriers[id]?.awaits(name) == true else { return }
    if case .opened(let body, let messages)? = object?.content {
      learnRecords(in: body, messages)
      watchForCopies(in: body)
      // The objects that it builds on may be of a later clock generation, and wait for this device
      // to reach it.
      if roster.isMember(body.author), timeKeeper.counts(body.reading) {
        follow(generation: body.reading.generation)
      }
    }
    let reader = carrierReader()
    let isLast = carriers[id]?.got(name, reader, object?.content)
    applyWaiting(id, reader)
    if isLast == true { getNext(id) }
  }

  /// Applies the opened objects, each part once this device covers the vector that it is above.
  private mutating func applyWaiting(_ id: CarrierID, _ reader: CarrierReader) {
    var reader = reader
    while let next = carriers[id]?.nextApplicable(reader) {
      switch next {
      case .none: return
      case .object(let body):
        _ = receiveWords(body.words)
        updateUnseen()
        contacts.note(body.author, noEarlierThan: body.reading.milliseconds)
        effects.append(.progress)
      case .part(let name, let part, let object, let isComplete):
        createStores([part.have])
        let isWhole = applyPart(part, of: object, isComplete: isComplete, reader)
        if var store = stores[part.store] {
          reader.stores[part.store] = CarrierReader.Own(store, store.digest(), coverage)
          stores[part.store] = store
        }
        carriers[id]?.noteApplied(part, of: name, isWhole: isWhole, reader)
      }
    }
  }

  private mutating func learnRecords(in body: ObjectBody, _ messages: [InboundMessage]) {
    guard body.rosterDigest != roster.digest else { return }
    let records = messages.flatMap { message in
      if case .records(let records) = message.body { records } else { [] as [CheckedRecord] }
    }
    if !records.isEmpty { learn(checked: members.counting(records, of: body.author)) }
  }

  private mutating func watchForCopies(in body: ObjectBody) {
    guard body.author == keys.id, let chain = ownChain else { return }
    if timeKeeper.wait(for: body.reading) == nil { timeKeeper.witness(body.reading) }
    let stores = stores
    if body.saysMore(of: chain, than: { stores[$0]?.log.chains[chain]?.received ?? 0 }) {
      handleClone()
    }
  }

  /// Applies a part that is ready for `reader`, which is this device. Returns whether all of it was
  /// applied.
  private mutating func applyPart(
    _ part: ObjectBody.Part, of object: Carrier.Waiting, isComplete: Bool, _ reader: CarrierReader
  ) -> Bool {
    if let ours = reader.hasOtherLimits(part) {
      report(
        .policyMismatch(
          store: part.store, peer: object.body.author, ours: ours, theirs: part.have.policy))
      return false
    }
    guard let store = stores[part.store],
      let (batch, taint) = reader.batch(
        of: part, in: object.body, object.content, within: batchBounds(in: store, on: nil),
        isComplete: isComplete)
    else { return false }
    if taint.rejected > 0 {
      report(.rejected(peer: object.body.author, count: taint.rejected))
    }
    repeater = object.content.first?.repeater
    let whole = apply(batch, taint: taint, from: nil, object.body.author)
    repeater = nil
    effects.append(.progress)
    return isComplete && !whole.isUnjudged && !whole.isOfAllChains
  }

  /// Leaves the state below the horizon if an object has this device's state, and its author is not
  /// below its own.
  private mutating func compareStates(on id: CarrierID, _ reader: CarrierReader) {
    guard stores.values.contains(where: \.horizon.isBelow) else { return }
    let parts = carriers[id]?.objects.counting(for: reader, .listed).flatMap { object in
      object.body.author == keys.id ? [] : object.parts
    }
    var mutations: [Mutation] = []
    for part in parts ?? [] where reader.stores[part.store]?.matches(part) == true {
      guard !part.have.isBelow || coverage.areOthersBelow(in: part.store) else { continue }
      mutations += stores[part.store]?.leaveBelow() ?? []
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  // MARK: Putting

  /// Publishes the drafts, deletes what is not needed, and puts what the carrier lacks.
  private mutating func publish(for id: CarrierID) {
    let hasPeers = links.values.contains(where: \.isExchanging)
    if !hasPeers { fulfilDuties(skipsWait: true) }
    guard keyring.current != nil, !holdsWithheld else { return endTurn(id) }
    let publishes = carriers[id]?.publishesAt(timeKeeper, since: carriersSince) ?? .max
    if publishes <= now.monotonicMilliseconds { flush(onCarrier: true) }
    receiveAllWords(on: id)
    // Deletions come first: a full carrier takes nothing.
    let reader = carrierReader()
    let names = carriers[id]?.firstDeletions(reader) ?? []
    guard !names.isEmpty else { return putLacking(id) }
    effects.append(.carrier(id, .delete(names)))
  }

  /// Applies the words of all objects again: a new process lacks those that carriers brought to the
  /// process before it. If a signature is invalid, the object's words do not count, since they
  /// would keep true ones away from the carrier.
  private mutating func receiveAllWords(on id: CarrierID) {
    for object in carriers[id]?.objects.counting(for: carrierReader([:])) ?? [] {
      if !receiveWords(object.body.words) { carriers[id]?.objects.forgetWords(of: object.name) }
    }
  }

  private mutating func putLacking(_ id: CarrierID) {
    if stores.values.contains(where: { !$0.log.vector.isEmpty }) { makeCarrierWord() }
    guard let author = objectAuthor() else { return endTurn(id) }
    carriers[id]?.put(Array(coverage.words.values), author)
    putNext(id)
  }

  /// Makes the next object; if none is left, the turn ends, perhaps after deletions.
  private mutating func putNext(_ id: CarrierID) {
    guard let author = objectAuthor() else { return endTurn(id) }
    let next = carriers[id]?.nextPut(author, clock: &timeKeeper, entropy: &entropy)
    switch next {
    case .put(let object):
      // Storage has the new clock before an object leaves with it.
      effects.append(.persist([.put(.clock, clock.latest.row)]))
      effects.append(.carrier(id, .put(object)))
    case .done:
      let names = carriers[id]?.lastDeletions(author.reader) ?? []
      guard !names.isEmpty else { return endTurn(id) }
      effects.append(.carrier(id, .delete(names)))
    case .stale: endTurn(id)
    case nil: break
    }
  }

  private mutating func endTurn(_ id: CarrierID) {
    leaveBelowIfAlone()
    let reader = carrierReader()
    compareStates(on: id, reader)
    let hasDrafts = stores.values.contains { !$0.drafts.isEmpty }
    carriers[id]?.end(reader, hasDrafts: hasDrafts, since: carriersSince)
    effects.append(.carrier(id, .rest))
    effects.append(.progress)
  }
}

extension CarrierReader.Own {
  fileprivate init(_ store: StoreReplica, _ digest: Digest256?, _ coverage: Coverage) {
    // Without a horizon nobody is below it.
    let below =
      store.horizon.clock == .zero ? [] : coverage.othersBelow(in: store.identifier)
    self.init(
      vector: store.log.vector, digest: digest, horizon: store.horizon, policy: store.policy,
      refused: store.reportedOverLimit, below: below)
  }
}
