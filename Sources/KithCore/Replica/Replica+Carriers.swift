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
    case .deleted: noteDeleted(id)
    case .failed(let retryAfter):
      carriers[id]?.fail(retryAfter: retryAfter, at: moment)
      effects.append(.carrier(id, .rest))
      effects.append(.progress)
    }
    saveObjects(of: id)
    beginDueTurns()
  }

  private mutating func attach(_ id: CarrierID, _ shortest: UInt64) {
    // The shell begins anew: it answers no earlier order.
    if carriers[id] == nil { carriers[id] = Carrier() }
    carriers[id]?.phase = .idle
    carriers[id]?.isStopping = false
    let moment = now.monotonicMilliseconds
    carriers[id]?.schedule = CarrierSchedule(shortestMilliseconds: shortest, at: moment)
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

  /// What this device covered may be lost, so everything is read again.
  mutating func forgetObjects() {
    for id in carriers.keys.sorted() {
      carriers[id]?.objects.forgetAll()
      saveObjects(of: id)
    }
  }

  // MARK: Turns

  mutating func beginDueTurns() {
    guard !isRevoked, !isJoining, roster.isMember(keys.id), incarnation != nil else { return }
    for id in carriers.keys.sorted() {
      guard case .idle = carriers[id]?.phase, let due = carriers[id]?.schedule?.dueAt,
        due <= now.monotonicMilliseconds
      else { continue }
      carriers[id]?.schedule?.begin()
      carriers[id]?.phase = .listing
      effects.append(.carrier(id, .list))
    }
  }

  /// When the next turn is due.
  var carriersDueAt: UInt64? {
    guard !isRevoked, !isJoining, roster.isMember(keys.id), incarnation != nil else { return nil }
    return carriers.values.lazy.compactMap { carrier in
      guard case .idle = carrier.phase else { return nil }
      return carrier.schedule?.dueAt
    }.min()
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
      parcelsBeforeFold: parcelsBeforeFold)
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
      // What it is above may be ahead of this device's generation, and wait for that.
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
      let isRepair = store.isEverything && reader.isOdd(store)
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
    guard let epoch = keyring.current, !stores.values.contains(where: \.log.holdsWithheld) else {
      return endTurn(id)
    }
    if mayPublish(on: id) { flush(onCarrier: true) }
    let reader = carrierReader()
    // A new process lacks the statements that carriers brought to the one before it.
    for parcel in carriers[id]?.objects.counting(for: reader) ?? [] { _ = hear(parcel.statements) }
    let generation = timeKeeper.generation
    let weights = stores.mapValues { $0.log.weights.total }
    let random = drawNumber()
    guard
      let plan = carriers[id]?.plan(
        reader, generation: generation, weights: weights, random: random)
    else { return }
    let statements = statementsToPut(on: id, plan)
    let isParcelLeft =
      !plan.shares.isEmpty || plan.needsRecords || plan.needsGeneration || !statements.isEmpty
    if isParcelLeft {
      let pace = UInt64(coverage.memberCount) * Limits.carrierStatementMilliseconds
      let moment = now.monotonicMilliseconds
      carriers[id]?.statementsAt = moment + pace
    }
    let handovers = carriers[id]?.objects.epochsWithoutHandover(reader) ?? []
    let shares = isParcelLeft ? parcels(of: plan.shares) : []
    carriers[id]?.phase = .putting(
      Carrier.Putting(
        epoch: epoch.id, shares: shares,
        replaces: plan.replaces, statements: StatementGroup.groups(of: statements),
        rosterDigest: plan.needsRecords ? reader.rosterDigest : nil, handovers: handovers))
    putNext(id)
  }

  /// One parcel for all shares, or one for each if they are large. The next is last.
  private func parcels(of shares: [Carrier.Share]) -> [[Carrier.Share]] {
    let bytes = shares.reduce(0) { sum, share in
      let changeSets = stores[share.store]?.log.changeSets(above: share.above) ?? []
      return sum + changeSets.reduce(0) { $0 + $1.weight }
    }
    return bytes <= partBytes ? [shares] : shares.reversed().map { [$0] }
  }

  private var partBytes: Int { min(Limits.parcelPartBytes, pieceBytes) }

  /// Makes the next object; if none is left, goes on with deleting.
  private mutating func putNext(_ id: CarrierID) {
    guard case .putting(var putting)? = carriers[id]?.phase else { return }
    // The rest would be another answer.
    let isSame =
      keyring.current?.id == putting.epoch
      && putting.shares.joined().allSatisfy { stores[$0.store]?.policy == $0.policy }
    guard isSame, let epoch = keyring.current,
      !stores.values.contains(where: \.log.holdsWithheld)
    else { return endTurn(id) }
    if let shares = putting.shares.last {
      putting.underWay = part(of: shares, &putting, under: epoch)
    } else if let older = putting.handovers.popLast() {
      putting.underWay = handover(from: older, to: epoch)
    }
    carriers[id]?.phase = .putting(putting)
    guard let object = putting.underWay?.object else { return deleteUnneeded(id) }
    // Storage has the new clock before an object leaves with it.
    effects.append(.persist([.setClock(clock.latest)]))
    effects.append(.carrier(id, .put(object)))
  }

  /// A device that is not certain of its time waits a while: a wrong time would order its writes
  /// wrongly for good.
  private func mayPublish(on id: CarrierID) -> Bool {
    let since = carriersSince ?? now.monotonicMilliseconds
    return timeKeeper.isCertain || carriers[id]?.isAsked == true
      || now.monotonicMilliseconds >= since + Limits.carrierUncertainMilliseconds
  }

  /// The statements that no parcel holds: with other content at once, alone only now and then.
  private mutating func statementsToPut(on id: CarrierID, _ plan: Carrier.Plan) -> [Statement] {
    let identifiers = stores.keys.sorted().filter { stores[$0]?.log.vector.isEmpty == false }
    sayAll(identifiers)
    let lacking = identifiers.flatMap { coverage.table.statements(of: $0) }.filter { statement in
      guard roster.isMember(statement.device) else { return false }
      let name = Parcel.SaidName(store: statement.store, device: statement.device.shortName)
      guard let said = plan.said[name] else { return true }
      // A process that covers what an earlier one said need not repeat it.
      return said.age < statement.age
        && !(statement.device == keys.id && said.extent == statement.extent)
    }
    let isAlone = plan.shares.isEmpty && !plan.needsRecords && !plan.needsGeneration
    guard isAlone, let carrier = carriers[id] else { return lacking }
    if carrier.isStopping || carrier.isAsked {
      return lacking.contains { $0.device == keys.id } ? lacking : []
    }
    return now.monotonicMilliseconds >= carrier.statementsAt ? lacking : []
  }

  /// Makes the next part of a parcel; mostly it is the only one.
  private mutating func part(
    of shares: [Carrier.Share], _ putting: inout Carrier.Putting, under epoch: EpochKeys
  ) -> (OutboundObject, KnownObject) {
    if putting.part.index == 0 { putting.part.group = drawNumber() }
    let mayContinue = shares.count == 1 && putting.part.index + 1 < Limits.parcelParts
    var parcel = Parcel(by: keys.id, at: tick())
    parcel.part = putting.part
    var batches: [StoredBatch] = []
    for share in shares {
      guard let log = stores[share.store]?.log, var have = stores[share.store]?.have() else {
        continue
      }
      var answer =
        putting.answer ?? Answer(store: share.store, number: 0, above: share.above)
      var batch = answer.nextPiece(of: log, bytes: mayContinue ? partBytes : .max)
      parcel.part.isLast = !batch.isUnfinished
      putting.answer = batch.isUnfinished ? answer : nil
      (batch.isUnfinished, batch.covers) = (false, [])
      batches.append(batch)
      have.isAwaited = false
      // An earlier part tells what it mends.
      if !parcel.part.isLast, !share.isEverything { (have.vector, have.digest) = ([:], nil) }
      parcel.stores.append(
        Parcel.Store(have: have, above: share.above, isEverything: share.isEverything))
    }
    parcel.time = toldTime
    var records: [[UInt8]] = []
    putting.part.index += 1
    if parcel.part.isLast {
      putting.part = Parcel.Part()
      putting.shares.removeLast()
    }
    if putting.shares.isEmpty {
      parcel.replaces = putting.replaces
      parcel.statements = putting.statements
      parcel.rosterDigest = putting.rosterDigest
      if putting.rosterDigest != nil {
        records = roster.records.sorted(by: Record.isSentBefore).messages()
      }
    }
    return outbound(parcel, .parcel, records, batches, under: epoch, named: epoch)
  }

  private mutating func handover(
    from older: EpochKeys, to epoch: EpochKeys
  ) -> (OutboundObject, KnownObject) {
    var parcel = Parcel(by: keys.id, at: tick())
    parcel.time = toldTime
    parcel.rosterDigest = roster.digest
    var boxes: [[UInt8]] = []
    for member in roster.sortedMembers {
      guard let box = epoch.sealed(to: member.boxKey, entropy: &entropy) else { continue }
      boxes.append(box)
      parcel.recipients.append(member.device)
    }
    var (object, known) = outbound(
      parcel, .handover, roster.records.sorted(by: Record.isSentBefore).messages(), [],
      under: epoch, named: older)
    object.handover = (older, boxes, entropy.draw())
    known.state = .handover(parcel, to: epoch.id)
    return (object, known)
  }

  private mutating func outbound(
    _ parcel: Parcel, _ kind: ObjectName.Kind, _ records: [[UInt8]], _ batches: [StoredBatch],
    under epoch: EpochKeys, named naming: EpochKeys
  ) -> (OutboundObject, KnownObject) {
    let object = OutboundObject(
      name: ObjectName(kind, of: naming, entropy: &entropy), parcel: parcel, records: records,
      batches: batches, account: account, epoch: epoch, keys: keys, nonce: entropy.draw())
    let known = KnownObject(
      state: .counted(parcel), epoch: naming.id, bytes: 0, firstSeen: now.wallMilliseconds,
      isSeen: false)
    return (object, known)
  }

  mutating func drawNumber() -> UInt64 {
    entropy.draw(Digest128.self).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  // MARK: The end of a turn

  /// Deletes only if a listing shows that all of this device's data stays on the carrier: what a fold
  /// names falsely is put again before.
  private mutating func deleteUnneeded(_ id: CarrierID) {
    let reader = carrierReader()
    guard let objects = carriers[id]?.objects else { return }
    let names = objects.deletable(by: reader)
    guard !names.isEmpty else { return endTurn(id) }
    let left = objects.counting(for: reader, onlySeen: true, without: names)
    let reached = CarrierObjects.reached(with: left, reader)
    let isThere = reader.stores.allSatisfy { store, own in
      CarrierReader.contains(own.vector, in: reached[store] ?? [:], except: { _ in false })
    }
    guard isThere else { return endTurn(id) }
    carriers[id]?.phase = .deleting(names)
    effects.append(.carrier(id, .delete(names)))
  }

  private mutating func noteDeleted(_ id: CarrierID) {
    guard case .deleting(let names)? = carriers[id]?.phase else { return }
    for name in names { carriers[id]?.objects[name] = nil }
    carriers[id]?.hasNews = true
    endTurn(id)
  }

  private mutating func endTurn(_ id: CarrierID) {
    let reader = carrierReader()
    carriers[id]?.end(reader)
    if !mayPublish(on: id), stores.values.contains(where: { !$0.drafts.isEmpty }) {
      let since = carriersSince ?? now.monotonicMilliseconds
      carriers[id]?.schedule?.plan(at: since + Limits.carrierUncertainMilliseconds)
    }
    effects.append(.carrier(id, .rest))
    effects.append(.progress)
  }
}
