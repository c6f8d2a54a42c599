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
      guard carriers[id]?.phase.isListing == true else { break }
      let reader = carrierReader()
      carriers[id]?.listed(listing, reader)
      getNext(id)
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
        vector: store.log.vector, digest: store.digest(), policy: store.policy,
        refused: store.reportedOverLimit)
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
    let content = object?.content
    switch content {
    case .parcel(let parcel, let messages), .handover(let parcel, let messages, _):
      guard case .getting(let getting)? = carriers[id]?.phase, getting.left.contains(name) else {
        return
      }
      learn(from: parcel, messages)
      watchForCopies(in: parcel)
      // Parcels that it is above may be ahead of this device's generation, and wait for that.
      if roster.isMember(parcel.author), timeKeeper.counts(parcel.reading) {
        hear(generation: parcel.reading.generation)
      }
    case .unreadable, nil: break
    }
    let reader = carrierReader()
    guard carriers[id]?.got(name, reader, content) == true else { return }
    takeOpened(id)
    guard case .getting(let getting)? = carriers[id]?.phase, getting.left.isEmpty else { return }
    getNext(id)
  }

  /// Takes in the opened parcels, each once what it is above is covered.
  private mutating func takeOpened(_ id: CarrierID) {
    var reader = carrierReader()
    while case .take(let name, let parcel, let messages)? = carriers[id]?.nextOpened(reader) {
      let taken = take(parcel, messages)
      reader = carrierReader()
      carriers[id]?.hasNews = true
      guard let bounded = carriers[id]?.bounded(parcel, messages) else { return }
      switch taken {
      case .whole, .partly:
        carriers[id]?.objects[name]?.state = .counted(bounded)
        carriers[id]?.objects[name]?.heldBack = taken == .whole ? nil : reader.circumstances
      case .unjudged: carriers[id]?.hold(name, bounded, isHeldBack: true, reader)
      }
    }
  }

  /// The records of a member count, or those that prove its author to be one.
  private mutating func learn(from parcel: Parcel, _ messages: [InboundMessage]) {
    var records: [CheckedRecord] = []
    for message in messages { if case .records(let some) = message.body { records += some } }
    guard !records.isEmpty, parcel.rosterDigest != roster.digest else { return }
    var tried = roster
    _ = tried.take(all: records)
    learn(checked: tried.isMember(parcel.author) ? records : records.filter(\.isRevocation))
  }

  /// A parcel of this device that says more of its chain than it has: its directory was restored or
  /// copied.
  private mutating func watchForCopies(in parcel: Parcel) {
    guard parcel.author == keys.id, let chain = ownChain else { return }
    if timeKeeper.wait(for: parcel.reading) == nil { timeKeeper.witness(parcel.reading) }
    let isCopy = parcel.stores.contains { store in
      store.have.vector[chain] ?? 0
        > stores[store.have.store]?.log.chains[chain]?.received ?? 0
    }
    if isCopy { meetClone() }
  }

  private enum Taken {
    case whole
    /// Not the stores with other limits.
    case partly
    /// Part of it cannot be judged yet.
    case unjudged
  }

  /// Takes in a parcel that is ready.
  private mutating func take(_ parcel: Parcel, _ messages: [InboundMessage]) -> Taken {
    let reader = carrierReader()
    var taken = Taken.whole
    for store in parcel.stores {
      let identifier = store.have.store
      if stores[identifier] == nil, stores.count < Limits.stores {
        create(identifier, policy: store.have.policy)
        sendHaves(only: [identifier])
      }
      guard let own = stores[identifier] else { continue }
      guard own.policy == store.have.policy else {
        effects.append(
          .report(
            .policyMismatch(
              store: identifier, peer: parcel.author, ours: own.policy,
              theirs: store.have.policy)))
        if taken == .whole { taken = .partly }
        continue
      }
      let isRepair = store.isEverything && reader.isRepair(store)
      guard var (batch, taint) = assemble(messages, of: own, from: parcel.author) else {
        return .unjudged
      }
      let vector = own.log.vector
      batch.isEverything = isRepair
      batch.isUnfinished = false
      batch.answers = 0
      batch.covers = parcel.part.isLast ? store.covers : []
      if !isRepair {
        // Objects may be old: nothing that is covered is taken in again.
        batch.changeSets.removeAll { $0.header.sequence <= vector[$0.header.chain] ?? 0 }
      }
      if taint.rejected > 0 {
        counters.rejected += taint.rejected
        effects.append(.report(.rejected(peer: parcel.author, count: taint.rejected)))
      }
      repeater = messages.first?.repeater
      taint = apply(batch, taint: taint, from: nil, parcel.author)
      repeater = nil
      if taint.isUnjudged || taint.isTotal { taken = .unjudged }
    }
    _ = hear(parcel.statements)
    coverage.note(parcel.author, noEarlierThan: parcel.reading.milliseconds)
    effects.append(.progress)
    return taken
  }

  /// The batch of a store in a parcel. Nil if its messages are in disorder.
  private func assemble(
    _ messages: [InboundMessage], of store: StoreReplica, from author: DeviceID
  ) -> (Batch, Taint)? {
    var assembly = BatchAssembly()
    let room = roomForBatch(in: store, on: nil)
    for message in messages {
      guard case .batch(let part) = message.body, part.store == store.identifier else { continue }
      switch assembly.add(part, size: message.size, keeping: room) {
      case .more: continue
      case .whole(let batch, let taint): return (batch, taint)
      case .unwanted, .violation: return nil
      }
    }
    return (Batch(store: store.identifier), Taint())
  }

  // MARK: Putting

  /// Publishes the drafts, and puts what the carrier lacks of this device's data.
  private mutating func putLacking(_ id: CarrierID) {
    let hasPeers = links.values.contains(where: \.isExchanging)
    if !hasPeers { fulfilDuties(isDue: true) }
    guard keyring.current != nil, !holdsWithheld else { return endTurn(id) }
    if publishesAt(on: id) <= now.monotonicMilliseconds { flush(onCarrier: true) }
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

  private func publishesAt(on id: CarrierID) -> UInt64 {
    carriers[id]?.publishesAt(timeKeeper, since: carriersSince) ?? .max
  }

  private mutating func endTurn(_ id: CarrierID) {
    let reader = carrierReader()
    carriers[id]?.end(reader)
    let publishes = publishesAt(on: id)
    if publishes > now.monotonicMilliseconds, stores.values.contains(where: { !$0.drafts.isEmpty })
    {
      carriers[id]?.schedule?.plan(at: publishes)
    }
    effects.append(.carrier(id, .rest))
    effects.append(.progress)
  }
}
