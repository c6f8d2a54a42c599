package import KithCrypto

/// One device's replica of its account's stores, as a value: inputs come in with the time, effects
/// go out in order. It does no I/O, starts no task, reads no clock and makes no randomness. So
/// production, the simulator and fuzzers run the same code.
///
/// The effects are carried out in order (``Effect``). After a failed commit, make a new replica
/// from storage.
package struct Replica: Sendable {
  let process: ProcessID
  var entropy: any Entropy
  var members: Members
  var timeKeeper = TimeKeeper()
  var clockDifferences = ClockDifferences()
  var incarnations = Incarnations()
  var earlySending = EarlySending()
  var keepsHistory = true

  var stores: [StoreIdentifier: StoreReplica] = [:]
  /// The bytes of an answer after which the rest waits; less only in tests of pieces.
  package var pieceBytes = Limits.pieceBytes
  /// How many removals are kept of a store; less only in simulations.
  package var removalLimit = Limits.removals
  /// The bytes of a carrier's object of level 0; less only in simulations.
  package var levelBytes = Limits.smallestObjectBytes
  var links: [SessionID: Link] = [:]
  var contacts = Contacts()
  /// The stores that this device or a peer cannot take because it has ``Limits/stores``, by peer.
  var storesLeftOut: [DeviceID: StoresLeftOut] = [:]
  var coverage: Coverage
  var counters = NodeStatus.Counters()
  /// The damage that storage found; the start drops it.
  var damage = StorageDamage()
  var carriers: [CarrierID: Carrier] = [:]
  /// When the first carrier was attached, by the monotonic clock.
  var carriersSince: UInt64?

  /// Effects of the current input.
  var effects: [Effect] = []
  /// The repeater of the current message, which works in parallel.
  var repeater: InboundMessage.Repeater?
  private var wakeAt: UInt64?

  /// Makes a replica from a snapshot.
  ///
  /// - Complexity: O(*n*) in the entries stored; each is opened.
  package init(
    account: AccountID, keys: DeviceKeys, snapshot: Snapshot,
    damage: StorageDamage = StorageDamage(), process: ProcessID, entropy: some Entropy
  ) throws(ReplicaError) {
    try self.init(
      account: account, keys: keys, outline: StorageOutline(snapshot, damage: damage),
      process: process, entropy: entropy
    ) { keys in keys.map { snapshot[$0] } }
  }

  /// Reads change sets one by one, and keeps no box. With a repeater, several stores are restored at
  /// once.
  ///
  /// - Complexity: O(*n*) in the entries stored; each is opened.
  package init(
    account: AccountID, keys: DeviceKeys, outline: StorageOutline, process: ProcessID,
    entropy: some Entropy, concurrently repeater: InboundMessage.Repeater? = nil,
    rows: @escaping @Sendable ([RowKey]) throws(StorageError) -> [[UInt8]?]
  ) throws(ReplicaError) {
    let snapshot = outline.snapshot
    var roster = Roster(account: account)
    var records: [Record] = []
    for (_, bytes) in snapshot.records.sorted(by: { $0.key < $1.key }) {
      guard let record = try? Record(decoding: bytes) else { throw .damagedRecord }
      records.append(record)
    }
    _ = roster.learn(all: records)
    // The roster may have no space left for the device's own certificate.
    guard
      roster.certificate(of: keys.id) != nil || records.contains(where: { $0.certifies(keys.id) })
    else { throw .notAMember }
    self.init(
      keys: keys, roster: roster, process: process, entropy: entropy)
    timeKeeper.clock = HybridClock(latest: snapshot.clock)
    incarnations = Incarnations(current: snapshot.incarnation)
    earlySending = EarlySending(mark: snapshot.earlySending)
    keepsHistory = snapshot.keepsHistory
    contacts = Contacts(snapshot.addresses)
    damage = outline.damage
    counters.damaged = damage.rows
    do throws(StorageError) {
      for store in try StoreReplica.restored(
        outline, by: judge, keyring, concurrently: repeater, rows)
      {
        stores[store.store.identifier] = store.store
        counters.damaged += store.damaged
      }
    } catch {
      throw .storage(error)
    }
    for (id, objects) in snapshot.carriers {
      carriers[id] = Carrier()
      for (name, bytes) in objects {
        guard let object = KnownObject(decoding: bytes, account: account) else { continue }
        carriers[id]?.objects.restore(name, object)
      }
    }
  }

  /// Makes a replica without stores. Devices with the same records can share a roster, so that the
  /// records are read once.
  package init(
    keys: DeviceKeys, roster: Roster, process: ProcessID, entropy: some Entropy
  ) {
    members = Members(of: roster, keys: keys)
    self.process = process
    self.entropy = entropy
    coverage = Coverage(account: roster.account, keys: keys, process: process)
    coverage.setMembers(roster.sortedMembers.map(\.device))
  }

  package var account: AccountID { roster.account }
  package var roster: Roster { members.roster }
  package var keyring: Keyring { members.keyring }
  var keys: DeviceKeys { members.keys }

  /// Returns the effects of an input, in order.
  package mutating func handle(_ input: Input, at instant: Instant) -> [Effect] {
    timeKeeper.update(at: instant)
    switch input {
    case .connected, .tick: healIfAhead()
    default: break
    }
    switch input {
    case .start(let isCopy, let boot): start(isCopy: isCopy, in: boot)
    case .clockStatus(let isSynchronised, let hasHardware):
      setClockStatus(isSynchronised: isSynchronised, hasHardware: hasHardware)
    case .acceptTime: healIfAhead(isAccepted: true)
    case .keepHistory(let keeps): keepHistory(keeps)
    case .open(let store, let policy): open(store, policy: policy)
    case .write(let id, let store, let operations): write(id, store, operations)
    case .adopt(let id, let store, let writes): adopt(id, store, writes)
    case .admit(let session, let joiner): admit(joiner, on: session)
    case .join(let session, let inviter): join(inviter, on: session)
    case .flush: flush()
    case .takeRefusals(let store, let number): takeRefusals(of: store, through: number)
    case .acceptLoss(let store): acceptLoss(of: store)
    case .learn(let records): learn(records)
    case .rename(let device, let name): rename(device, to: name)
    case .revoke(let device, let staying): revoke(device, keeping: staying)
    case .forgetAddress(let address): forget(address: address)
    case .connected(let session, let peer): connect(session, to: peer)
    case .received(let session, let message): receive(message, on: session)
    case .writable(let session, let isWritable): setWritable(isWritable, session)
    case .drained(let session): handleDrained(on: session)
    case .disconnected(let session): disconnect(session)
    case .carrier(let carrier, let event): handle(event, of: carrier)
    case .tick: passTime()
    }
    passOnAddresses()
    requestWake()
    defer { effects = [] }
    return effects
  }

  /// True with members whose clock agrees, and in a join.
  func exchanges(_ id: SessionID) -> Bool { links[id]?.isExchanging == true }

  /// Whether a `flush`, which the shell hands in before each commit, has anything to do.
  package var needsFlush: Bool {
    stores.keys.contains(where: needsFlush)
  }

  /// Accepted writes that no effect makes durable yet.
  var waitingWrites: [WriteID] { stores.values.flatMap(\.waiting) }

  /// True if the store has something to persist or to send, or drafts that can be published.
  func needsFlush(_ identifier: StoreIdentifier) -> Bool {
    guard let store = stores[identifier] else { return false }
    return store.needsFlush || !store.drafts.isEmpty && canPublish(identifier)
  }

  mutating func report(_ report: Report) {
    counters.count(report)
    effects.append(.report(report))
  }

  // MARK: Time

  private mutating func passTime() {
    // The requested wake has come.
    wakeAt = nil
    fulfilDutiesIfDue()
    passTimeOnLinks()
    passOnWords()
    findLeftBehind()
    dropExpiredHistory()
    beginDueTurns()
  }

  private mutating func requestWake() {
    let healAt = timeKeeper.planHealing()
    let linksAt = links.values.lazy.map(\.wakeAt).min()
    // A joiner has no duties yet.
    let dutiesAt = isJoining ? nil : members.duties.dueAt
    let next = [
      linksAt, coverage.dueAt, dutiesAt, healAt, carriersDueAt, contacts.changesDueAt,
    ].compactMap(\.self).min()
    guard let next, next != wakeAt else { return }
    wakeAt = next
    effects.append(.wake(atMonotonicMilliseconds: next))
  }

  // MARK: Start

  private mutating func start(isCopy: Bool, in boot: BootID?) {
    let lacksOwnData = dropDamage()
    let isUnclean = earlySending.start(in: boot, isCopy: isCopy)
    if isUnclean { timeKeeper.skipEarlySends() }
    if isCopy || lacksOwnData || incarnations.current == nil {
      renewIncarnation()
    } else if isUnclean {
      renewIncarnation(isReported: false)
    }
    let author = keys.id
    for identifier in stores.keys.sorted() {
      guard let outcome = stores[identifier]?.start(author: author) else { continue }
      carryOut(outcome, in: [identifier])
    }
    scheduleDuties()
  }

  /// Whether this device has used up its incarnations, and publishes no more.
  package var hasNoIncarnations: Bool { incarnations.areSpent(usedIncarnations) }

  /// - Complexity: O(*s*) in the stores.
  var usedIncarnations: Set<Incarnation> {
    stores.values.reduce(into: []) { $0.formUnion($1.log.incarnations[keys.id] ?? []) }
  }

  /// This device runs, or ran, in another process.
  mutating func handleClone() {
    report(.clone(keys.id))
    renewIncarnation()
  }

  /// `isReported`: the operator has to know, because the directory was copied or the disk failed.
  mutating func renewIncarnation(isReported: Bool = true) {
    let fresh = drawIncarnation()
    let renewal = incarnations.renew(fresh, used: usedIncarnations)
    effects.append(
      .persist(
        [.put(.incarnation, fresh.row), .put(.clock, clock.latest.row)] + earlySending.clear()))
    switch renewal {
    case .first: break
    case .another where !isReported: break
    case .another: report(.newIncarnation)
    case .noneLeft: report(.tooManyIncarnations)
    }
  }

  /// The device is about to be closed: after this, an end of the host loses nothing that was sent.
  mutating func endEarlySending() -> [Effect] {
    let mutations = earlySending.end()
    return mutations.isEmpty ? [] : [.persist(mutations + [.put(.clock, clock.latest.row)])]
  }

  mutating func drawIncarnation() -> Incarnation {
    Incarnation(rawValue: entropy.drawNumber())
  }
}

/// Why no replica can be made from storage.
package enum ReplicaError: Error, Hashable, Sendable {
  case damagedRecord
  /// No record certifies this device.
  case notAMember
  case storage(StorageError)
}
