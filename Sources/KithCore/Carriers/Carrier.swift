internal import KithCrypto

/// A carrier, as one device uses it in turns: list, get and take in what is new, put what is lacking,
/// delete what is not needed (`Docs/Protocol/carriers.md`).
struct Carrier: Sendable {
  enum Phase: Sendable {
    case idle
    case listing
    case getting(Getting)
    case putting(Deposit)
    case deleting([ObjectName])
  }

  struct Getting: Sendable {
    let listing: [ObjectName: Int]
    /// Asked for, and not answered.
    var left: Set<ObjectName> = []
    /// Asked for in this turn.
    var tried: Set<ObjectName> = []
    var bytes = 0
    var doubtful = 0
    /// Opened, and not taken in yet.
    var opened: [ObjectName: (parcel: Parcel, content: [InboundMessage])] = [:]
  }

  var objects = CarrierObjects()
  var phase = Phase.idle
  /// Nil until the shell attaches it.
  var schedule: CarrierSchedule?
  /// Whether the turn under way, or the next one, was asked for.
  var isAsked = false
  var isStopping = false
  /// Whether something was taken in, put or deleted in this turn.
  var hasNews = false
  /// When to put a fold.
  var foldAt: UInt64?
  /// When statements alone may be put.
  var statementsAt: UInt64 = 0
  /// The own vectors when everything was put because a digest differed.
  var repaired: [StoreIdentifier: [ChainID: UInt64]] = [:]
  /// Listed names that belong to no open epoch.
  var foreign = 0
  /// The vectors that the carrier brought together when a turn last ended, and its listing's time.
  var held: (reached: [StoreIdentifier: [ChainID: UInt64]], milliseconds: UInt64)?
  /// Since when all that this device covers is there.
  var heldSince: UInt64?
  var listedMilliseconds: UInt64?

  /// The shell uses it from now on; it answers no earlier order.
  mutating func attach(shortestMilliseconds: UInt64, at now: UInt64) {
    phase = .idle
    isStopping = false
    schedule = CarrierSchedule(shortestMilliseconds: shortestMilliseconds, at: now)
  }

  /// When the next turn is due; nil while one is under way.
  var dueAt: UInt64? {
    guard case .idle = phase else { return nil }
    return schedule?.dueAt
  }

  mutating func begin() {
    schedule?.begin()
    phase = .listing
  }

  // MARK: Getting

  /// Returns false if no listing was asked for.
  mutating func listed(_ listing: [ObjectName: Int], _ reader: CarrierReader) -> Bool {
    guard case .listing = phase else { return false }
    listedMilliseconds = reader.now.wallMilliseconds
    objects.compare(with: listing, reader)
    phase = .getting(Getting(listing: listing))
    return true
  }

  /// The objects to get next; empty: none.
  mutating func nextGets(_ reader: CarrierReader) -> [ObjectName] {
    guard case .getting(var getting) = phase else { return [] }
    foreign = objects.meet(getting.listing, reader)
    var names: [ObjectName] = []
    for name in getting.listing.keys.sorted() where !getting.tried.contains(name) {
      guard let object = objects[name], isWanted(object, reader),
        getting.tried.count < Limits.objectsPerTurn,
        getting.bytes + object.bytes <= Limits.objectBytesPerTurn
      else { continue }
      if isDoubtful(object, name, reader) {
        guard getting.doubtful < Limits.doubtfulObjectsPerTurn else { continue }
        getting.doubtful += 1
      }
      getting.bytes += object.bytes
      getting.tried.insert(name)
      names.append(name)
    }
    getting.left = Set(names)
    phase = .getting(getting)
    return names
  }

  private func isWanted(_ object: KnownObject, _ reader: CarrierReader) -> Bool {
    guard object.bytes <= Limits.objectBytes else { return false }
    return switch object.state {
    case .unread, .unreadable: true
    case .waiting(let parcel):
      object.heldBack != reader.circumstances && [.ready, .void].contains(judge(parcel, reader))
    case .counted: object.heldBack.map { $0 != reader.circumstances } == true
    case .handover: false
    }
  }

  private func judge(_ parcel: Parcel, _ reader: CarrierReader) -> CarrierReader.Verdict {
    let verdict = reader.judge(parcel)
    return verdict == .ready && !objects.hasEarlierParts(of: parcel, for: reader) ? .waits : verdict
  }

  private func isDoubtful(
    _ object: KnownObject, _ name: ObjectName, _ reader: CarrierReader
  ) -> Bool {
    if case .unreadable = object.state { return true }
    return name.origin(among: reader.epochs)?.kind == .handover
  }

  /// Whether an object was asked for, and did not come yet.
  func awaits(_ name: ObjectName) -> Bool {
    if case .getting(let getting) = phase { getting.left.contains(name) } else { false }
  }

  /// An object that was asked for came, or is gone. Returns whether all have come.
  mutating func got(_ name: ObjectName, _ reader: CarrierReader, _ content: OpenedObject.Content?)
    -> Bool
  {
    guard case .getting(var getting) = phase, getting.left.remove(name) != nil else { return false }
    let time = reader.now.wallMilliseconds
    switch content {
    case nil: if objects[name]?.missingSince == nil { objects[name]?.missingSince = time }
    case .unreadable:
      if case .unreadable = objects[name]?.state { break }
      objects[name]?.state = .unreadable(since: time)
    case .handover(let parcel, _, let newest):
      objects[name]?.state = .handover(parcel, to: newest)
    case .parcel(let parcel, let content): getting.opened[name] = (parcel, content)
    }
    phase = .getting(getting)
    return getting.left.isEmpty
  }

  enum Opened {
    case none
    case take(ObjectName, Parcel, [InboundMessage])
  }

  /// Takes out the next opened parcel that can be taken in now.
  mutating func nextOpened(_ reader: CarrierReader) -> Opened {
    guard case .getting(var getting) = phase else { return .none }
    let sorted = getting.opened.sorted {
      ($0.value.parcel.clock, $0.key) < ($1.value.parcel.clock, $1.key)
    }
    for (name, opened) in sorted {
      switch judge(opened.parcel, reader) {
      case .ready:
        getting.opened[name] = nil
        phase = .getting(getting)
        return .take(name, opened.parcel, opened.content)
      case .void:
        getting.opened[name] = nil
        let parcel = bounded(opened.parcel, opened.content)
        objects[name]?.state = .counted(parcel)
      case .waits, .cannotJudge: break
      }
    }
    phase = .getting(getting)
    return .none
  }

  enum Taken {
    case whole
    /// Not the stores with other limits.
    case partly
    /// Part of it cannot be judged yet.
    case unjudged
  }

  /// A parcel was taken in, after which the device is as `reader`.
  mutating func took(
    _ name: ObjectName, _ parcel: Parcel, _ content: [InboundMessage], _ taken: Taken,
    _ reader: CarrierReader
  ) {
    hasNews = true
    let parcel = bounded(parcel, content)
    switch taken {
    case .whole, .partly:
      objects[name]?.state = .counted(parcel)
      objects[name]?.heldBack = taken == .whole ? nil : reader.circumstances
    case .unjudged: hold(name, parcel, isHeldBack: true, reader)
    }
  }

  /// All asked for have come: what cannot be taken in yet waits, and is got again.
  mutating func putOff(_ reader: CarrierReader) {
    guard case .getting(var getting) = phase else { return }
    for (name, opened) in getting.opened.sorted(by: { $0.key < $1.key }) {
      let parcel = bounded(opened.parcel, opened.content)
      hold(name, parcel, isHeldBack: reader.judge(opened.parcel) == .cannotJudge, reader)
    }
    getting.opened = [:]
    phase = .getting(getting)
  }

  private func bounded(_ parcel: Parcel, _ content: [InboundMessage]) -> Parcel {
    parcel.bounded(by: content, after: objects.earlierParts(of: parcel).compactMap(\.parcel))
  }

  /// A parcel waits. Of one author only some do: the others count as unreadable.
  private mutating func hold(
    _ name: ObjectName, _ parcel: Parcel, isHeldBack: Bool, _ reader: CarrierReader
  ) {
    let waiting = objects.known.values.count {
      if case .waiting(let other) = $0.state { other.author == parcel.author } else { false }
    }
    let isKnown = if case .waiting = objects[name]?.state { true } else { false }
    guard waiting < Limits.waitingParcels || isKnown else {
      objects[name]?.state = .unreadable(since: reader.now.wallMilliseconds)
      return
    }
    objects[name]?.state = .waiting(parcel)
    objects[name]?.heldBack = isHeldBack ? reader.circumstances : nil
  }

  // MARK: Putting

  struct Plan {
    var shares: [Deposit.Share] = []
    /// Shares without data, which go with any parcel: of stores whose state no parcel tells.
    var untold: [Deposit.Share] = []
    var replaces: [ObjectName] = []
    /// Whether no parcel holds the records, or none the generation of this device's clock.
    var needsRecords = false
    var needsGeneration = false
    /// Whether only devices below their horizon tell this device's state: they wait to hear of it.
    var needsState = false
    /// The statements that the parcels hold.
    var said: [Parcel.SaidName: Parcel.Said] = [:]

    /// Whether a parcel is needed, whatever statements there are.
    var needsParcel: Bool { !shares.isEmpty || needsRecords || needsGeneration || needsState }
  }

  /// Finds the author's data that the carrier lacks. `random` is drawn for the wait before a fold.
  mutating func plan(_ author: ParcelAuthor, random: UInt64) -> Plan {
    let reader = author.reader
    // An object to be deleted counts as lacking: a fold may have named it falsely.
    let parcels = objects.counting(for: reader, without: objects.deletable(by: reader))
    let reached = CarrierObjects.reached(with: parcels, reader)
    var plan = Plan()
    plan.replaces = fold(parcels, author, random)
    for (store, own) in reader.stores.sorted(by: { $0.key < $1.key }) where !own.vector.isEmpty {
      let isOdd =
        repaired[store] != own.vector
        && parcels.contains { $0[store].map(reader.isOdd) == true }
      if isOdd || !plan.replaces.isEmpty {
        plan.shares.append(
          Deposit.Share(store: store, above: [:], isEverything: true, policy: own.policy))
        if isOdd { repaired[store] = own.vector }
        continue
      }
      let there = reached[store] ?? [:]
      guard !CarrierReader.contains(own.vector, in: there, except: { _ in false }) else {
        let told = parcels.compactMap { $0[store] }.filter(own.isTold(by:))
        let isAwaited = !told.isEmpty && !own.horizon.isBelow && told.allSatisfy(\.have.isBelow)
        if isAwaited { plan.needsState = true }
        if told.isEmpty || isAwaited {
          plan.untold.append(
            Deposit.Share(
              store: store, above: own.vector, isEverything: false, policy: own.policy))
        }
        continue
      }
      let above = there.compactMapValuesWithKeys { chain, sequence in
        own.vector[chain].map { min($0, sequence) }
      }
      plan.shares.append(
        Deposit.Share(store: store, above: above, isEverything: false, policy: own.policy))
    }
    plan.needsRecords =
      !plan.replaces.isEmpty
      || !parcels.contains { $0.rosterDigest == reader.rosterDigest }
    plan.needsGeneration = !parcels.contains {
      $0.reading.generation >= reader.timeKeeper.generation
    }
    for parcel in parcels {
      plan.said.merge(
        parcel.said.filter { !reader.timeKeeper.refutes($0.value.age.started) },
        uniquingKeysWith: Parcel.Said.later)
    }
    return plan
  }

  /// The parcels that one parcel with everything replaces now: if there are too many, after a random
  /// wait, unless another device was faster.
  private mutating func fold(
    _ parcels: [Parcel], _ author: ParcelAuthor, _ random: UInt64
  ) -> [ObjectName] {
    let reader = author.reader
    let replaceable = objects.replaceable(by: reader)
    let bytes = replaceable.reduce(0) { $0 + (objects[$1]?.bytes ?? 0) }
    let folded = SealedObject.paddedSize(author.logs.values.reduce(0) { $0 + $1.weights.total })
    let named = Set(parcels.lazy.flatMap(\.replaces))
    // The parts of a parcel count once, so that a fold counts once.
    guard
      objects.groupCount(of: replaceable) > reader.parcelsBeforeFold
        || bytes > Limits.foldFactor * folded + Limits.foldBytes,
      named.isDisjoint(with: replaceable)
    else {
      foldAt = nil
      return []
    }
    let now = reader.now.monotonicMilliseconds
    guard let foldAt else {
      self.foldAt = now + random % Limits.foldWaitMilliseconds
      return []
    }
    guard foldAt <= now else { return [] }
    self.foldAt = nil
    return replaceable
  }

  /// Of these statements, those that no parcel holds: with other content at once, alone only now and
  /// then.
  private func lacking(
    _ statements: [Statement], _ plan: Plan, _ reader: CarrierReader
  ) -> [Statement] {
    let lacking = statements.filter { statement in
      guard reader.roster.isMember(statement.device) else { return false }
      let name = Parcel.SaidName(store: statement.store, device: statement.device.shortName)
      guard let said = plan.said[name] else { return true }
      // A process that covers what an earlier one said need not repeat it.
      return said.age < statement.age
        && !(statement.device == reader.device && said.extent == statement.extent)
    }
    if plan.needsParcel { return lacking }
    if isStopping || isAsked {
      return lacking.contains { $0.device == reader.device } ? lacking : []
    }
    return reader.now.monotonicMilliseconds >= statementsAt ? lacking : []
  }

  /// Begins to put a plan's shares, and the statements that are lacking.
  mutating func put(_ plan: Plan, _ statements: [Statement], _ author: ParcelAuthor) {
    let reader = author.reader
    let statements = lacking(statements, plan, reader)
    var deposit = Deposit(handovers: objects.epochsWithoutHandover(reader), under: reader.epoch?.id)
    if plan.needsParcel || !statements.isEmpty {
      var plan = plan
      plan.shares = (plan.shares + plan.untold).sorted { $0.store < $1.store }
      deposit.put(plan, StatementGroup.groups(of: statements), author)
      let pace = UInt64(reader.roster.sortedMembers.count) * Limits.carrierStatementMilliseconds
      statementsAt = reader.now.monotonicMilliseconds + pace
    }
    phase = .putting(deposit)
  }

  /// The next object to put; nil if this is not the time to put.
  mutating func nextPut(
    _ author: ParcelAuthor, clock timeKeeper: inout TimeKeeper, entropy: inout some Entropy
  ) -> Deposit.Next? {
    guard case .putting(var deposit) = phase else { return nil }
    let next = deposit.next(by: author, clock: &timeKeeper, entropy: &entropy)
    phase = .putting(deposit)
    return next
  }

  /// An object was put. Returns false if none of that name was under way.
  mutating func stored(_ name: ObjectName, bytes: Int) -> Bool {
    guard case .putting(var deposit) = phase, let known = deposit.stored(name, bytes: bytes) else {
      return false
    }
    objects[name] = known
    hasNews = true
    phase = .putting(deposit)
    return true
  }

  /// When drafts may be published for it, by the monotonic clock. A device that is not certain of its
  /// time waits a while: a wrong time would order its writes wrongly for good. `since` is when its
  /// first carrier was attached.
  func publishesAt(_ timeKeeper: TimeKeeper, since: UInt64?) -> UInt64 {
    let now = timeKeeper.now.monotonicMilliseconds
    guard !timeKeeper.isCertain, !isAsked else { return now }
    return (since ?? now) + Limits.carrierUncertainMilliseconds
  }

  // MARK: Deleting

  /// The objects to delete; empty: none now.
  mutating func nextDeletions(_ reader: CarrierReader) -> [ObjectName] {
    var names = objects.deletable(by: reader)
    if !objects.reachAll(without: names, reader) {
      // Objects that do not open hold nothing. One may be a damaged handover to an epoch that this
      // device lacks. Its author puts it again only once it is gone.
      names.removeAll { objects[$0]?.isOpened != false }
    }
    guard !names.isEmpty else { return [] }
    phase = .deleting(names)
    return names
  }

  /// All that were to be deleted are gone. Returns false if none were.
  mutating func deleted() -> Bool {
    guard case .deleting(let names) = phase else { return false }
    for name in names { objects[name] = nil }
    hasNews = true
    return true
  }

  // MARK: The end of a turn

  /// `since` is when the first carrier was attached; `hasDrafts`: some wait to be published.
  mutating func end(_ reader: CarrierReader, hasDrafts: Bool, since: UInt64?) {
    let seen = objects.counting(for: reader, onlySeen: true)
    let listed = listedMilliseconds ?? reader.now.wallMilliseconds
    held = (CarrierObjects.reached(with: seen, reader), listed)
    heldSince = isHeld(reader.stores.mapValues(\.vector)) ? heldSince ?? listed : nil
    phase = .idle
    if schedule?.isAsked == false { isAsked = false }
    schedule?.end(isNews: hasNews, at: reader.now.monotonicMilliseconds)
    if let foldAt { schedule?.plan(at: foldAt) }
    // A listing is to show what was put.
    if hasNews, heldSince == nil {
      schedule?.plan(at: reader.now.monotonicMilliseconds + Limits.carrierWriteMilliseconds / 2)
    }
    hasNews = false
    let publishes = publishesAt(reader.timeKeeper, since: since)
    if hasDrafts, publishes > reader.now.monotonicMilliseconds { schedule?.plan(at: publishes) }
  }

  /// Whether these vectors were on the carrier in its last listing.
  func isHeld(_ vectors: [StoreIdentifier: [ChainID: UInt64]]) -> Bool {
    guard let held else { return false }
    return vectors.allSatisfy { store, vector in
      CarrierReader.contains(vector, in: held.reached[store] ?? [:], except: { _ in false })
    }
  }

  /// A store's limits changed: readers with the new ones leave the store out of what is there.
  mutating func doubt(_ store: StoreIdentifier) {
    held?.reached[store] = nil
    heldSince = nil
  }

  /// A device was revoked: its objects count for no reader.
  mutating func doubtAll() {
    held = nil
    heldSince = nil
  }

  mutating func fail(retryAfter: UInt64?, at now: UInt64) {
    phase = .idle
    hasNews = false
    schedule?.fail(retryAfter: retryAfter, at: now)
  }
}

extension Dictionary {
  fileprivate func compactMapValuesWithKeys<T>(_ transform: (Key, Value) -> T?) -> [Key: T] {
    reduce(into: [:]) { result, each in
      if let value = transform(each.key, each.value) { result[each.key] = value }
    }
  }
}
