internal import KithCrypto

/// ``Carrier`` has the rules. It gets the replica's data here, and its outcomes become effects.
extension Replica {
  package var objectOpener: ObjectOpener {
    ObjectOpener(account: account, keys: keys, epochs: keyring.newestFirst)
  }

  mutating func carry(_ id: CarrierID, _ event: CarrierEvent) {
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
      let reader = carrierReader()
      if carriers[id]?.listed(listing, reader) == true { getNext(id) }
    case .got(let name, let object): get(name, object, from: id)
    case .stored(let name, let bytes):
      if carriers[id]?.stored(name, bytes: bytes) == true { putNext(id) }
    case .deleted: if carriers[id]?.deleted() == true { endTurn(id) }
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
    carriers[id]?.objects.forgetAll()
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
      carriers[id]?.objects.forgetAll()
      saveObjects(of: id)
    }
  }

  // MARK: Turns

  private var usesCarriers: Bool {
    !isRevoked && !isJoining && roster.isMember(keys.id) && incarnations.current != nil
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
    var own: [StoreIdentifier: CarrierReader.Own] = [:]
    for identifier in stores.keys {
      guard var store = stores[identifier] else { continue }
      own[identifier] = CarrierReader.Own(
        vector: store.log.vector, digest: store.digest(), horizon: store.horizon,
        policy: store.policy, refused: store.reportedOverLimit)
      stores[identifier] = store
    }
    return CarrierReader(
      device: keys.id, stores: own, roster: roster, rosterDigest: roster.digest,
      epoch: keyring.current, epochs: keyring.newestFirst, timeKeeper: timeKeeper,
      parcelsBeforeFold: parcelsBeforeFold,
      isWithholding: holdsWithheld)
  }

  private mutating func parcelAuthor() -> ParcelAuthor {
    ParcelAuthor(
      account: account, keys: keys, reader: carrierReader(), logs: stores.mapValues(\.log),
      partBytes: min(Limits.parcelPartBytes, pieceBytes))
  }

  // MARK: Getting

  private mutating func getNext(_ id: CarrierID) {
    let reader = carrierReader()
    carriers[id]?.putOff(reader)
    if let names = carriers[id]?.nextGets(reader), !names.isEmpty {
      effects.append(.carrier(id, .get(names)))
    } else {
      putLacking(id)
    }
  }

  private mutating func get(_ name: ObjectName, _ object: OpenedObject?, from id: CarrierID) {
    guard carriers[id]?.awaits(name) == true else { return }
    let content = object?.content
    if let (parcel, messages) = content?.opened {
      learn(from: parcel, messages)
      watchForCopies(in: parcel)
      // Parcels that it is above may be ahead of this device's generation, and wait for that.
      if roster.isMember(parcel.author), timeKeeper.counts(parcel.reading) {
        hear(generation: parcel.reading.generation)
      }
    }
    let reader = carrierReader()
    let isLast = carriers[id]?.got(name, reader, content)
    takeOpened(id)
    if isLast == true { getNext(id) }
  }

  /// Takes in the opened parcels, each once what it is above is covered.
  private mutating func takeOpened(_ id: CarrierID) {
    var reader = carrierReader()
    while case .take(let name, let parcel, let messages)? = carriers[id]?.nextOpened(reader) {
      let taken = take(parcel, messages, reader)
      reader = carrierReader()
      carriers[id]?.took(name, parcel, messages, taken, reader)
    }
  }

  private mutating func learn(from parcel: Parcel, _ messages: [InboundMessage]) {
    guard parcel.rosterDigest != roster.digest else { return }
    let records = messages.flatMap { message in
      if case .records(let records) = message.body { records } else { [] as [CheckedRecord] }
    }
    if !records.isEmpty { learn(checked: members.counting(records, of: parcel.author)) }
  }

  private mutating func watchForCopies(in parcel: Parcel) {
    guard parcel.author == keys.id, let chain = ownChain else { return }
    if timeKeeper.wait(for: parcel.reading) == nil { timeKeeper.witness(parcel.reading) }
    let stores = stores
    if parcel.saysMore(of: chain, than: { stores[$0]?.log.chains[chain]?.received ?? 0 }) {
      meetClone()
    }
  }

  /// Takes in a parcel that is ready for `reader`, which is this device.
  private mutating func take(
    _ parcel: Parcel, _ messages: [InboundMessage], _ reader: CarrierReader
  ) -> Carrier.Taken {
    var taken = Carrier.Taken.whole
    for store in parcel.stores {
      let identifier = store.have.store
      adopt([store.have])
      guard let own = stores[identifier] else { continue }
      let room = roomForBatch(in: own, on: nil)
      switch reader.open(store, of: parcel, messages, keeping: room) {
      case .take(let batch, let taint):
        if taint.rejected > 0 {
          report(.rejected(peer: parcel.author, count: taint.rejected))
        }
        repeater = messages.first?.repeater
        let taint = apply(batch, taint: taint, from: nil, parcel.author)
        repeater = nil
        if taint.isUnjudged || taint.isTotal { taken = .unjudged }
      case .otherLimits(let ours):
        report(
          .policyMismatch(
            store: identifier, peer: parcel.author, ours: ours, theirs: store.have.policy))
        if taken == .whole { taken = .partly }
      case .disorder: return .unjudged
      }
    }
    _ = hear(parcel.statements)
    noteSeen()
    contacts.note(parcel.author, noEarlierThan: parcel.reading.milliseconds)
    effects.append(.progress)
    return taken
  }

  /// Leaves the horizon behind if a parcel tells this device's state, and its author is not below.
  private mutating func compareStates(on id: CarrierID) {
    guard stores.values.contains(where: \.horizon.isBelow) else { return }
    let reader = carrierReader()
    let told = carriers[id]?.objects.counting(for: reader, onlySeen: true).flatMap { parcel in
      parcel.author == keys.id ? [] : parcel.stores
    }
    var mutations: [Mutation] = []
    for store in told ?? [] where reader.stores[store.have.store]?.isTold(by: store) == true {
      guard !store.have.isBelow || coverage.areOthersBelow(in: store.have.store) else { continue }
      mutations += stores[store.have.store]?.leaveBelow() ?? []
    }
    carryOut(StoreOutcome(mutations: mutations, hasProgress: !mutations.isEmpty), in: [])
  }

  // MARK: Putting

  /// Publishes the drafts, and puts what the carrier lacks of this device's data.
  private mutating func putLacking(_ id: CarrierID) {
    let hasPeers = links.values.contains(where: \.isExchanging)
    if !hasPeers { fulfilDuties(isDue: true) }
    guard keyring.current != nil, !holdsWithheld else { return endTurn(id) }
    let publishes = carriers[id]?.publishesAt(timeKeeper, since: carriersSince) ?? .max
    if publishes <= now.monotonicMilliseconds { flush(onCarrier: true) }
    let author = parcelAuthor()
    // A new process lacks the statements that carriers brought to the one before it.
    for parcel in carriers[id]?.objects.counting(for: author.reader) ?? [] {
      _ = hear(parcel.statements)
    }
    let random = entropy.drawNumber()
    guard let plan = carriers[id]?.plan(author, random: random) else { return }
    let said = stores.keys.sorted().filter { stores[$0]?.log.vector.isEmpty == false }
    sayAll(said)
    carriers[id]?.put(plan, said.flatMap { coverage.table.statements(of: $0) }, author)
    putNext(id)
  }

  /// Makes the next object; if none is left, goes on with deleting.
  private mutating func putNext(_ id: CarrierID) {
    let author = parcelAuthor()
    let next = carriers[id]?.nextPut(author, clock: &timeKeeper, entropy: &entropy)
    switch next {
    case .put(let object):
      // Storage has the new clock before an object leaves with it.
      effects.append(.persist([.setClock(clock.latest)]))
      effects.append(.carrier(id, .put(object)))
    case .done:
      let names = carriers[id]?.nextDeletions(author.reader) ?? []
      guard !names.isEmpty else { return endTurn(id) }
      effects.append(.carrier(id, .delete(names)))
    case .stale: endTurn(id)
    case nil: break
    }
  }

  private mutating func endTurn(_ id: CarrierID) {
    compareStates(on: id)
    let reader = carrierReader()
    let hasDrafts = stores.values.contains { !$0.drafts.isEmpty }
    carriers[id]?.end(reader, hasDrafts: hasDrafts, since: carriersSince)
    effects.append(.carrier(id, .rest))
    effects.append(.progress)
  }
}
