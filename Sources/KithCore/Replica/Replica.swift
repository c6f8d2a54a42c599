public import KithCrypto

/// One device's replica of its account's stores, as a value: inputs come in with the time, effects
/// go out in order, and nothing else happens. It does no I/O, starts no task, reads no clock and
/// makes no randomness, so the same code runs in production, in the simulator and in fuzzers.
///
/// The rule of the effects: a `persist` stands before every effect that depends on it, and the
/// shell never reorders. After a commit fails, throw the replica away and make a new one from what
/// storage holds.
public struct Replica: Sendable {
  /// The account.
  public let account: AccountID
  let keys: DeviceKeys
  let process: ProcessID
  var entropy: any Entropy

  /// The account's membership.
  public internal(set) var roster: Roster
  /// The epochs' keys that this device holds.
  public internal(set) var keyring: Keyring

  var timeKeeper = TimeKeeper()
  /// Devices whose clock differed too much when they were last heard.
  var clockDifferences: [DeviceID: ClockDifference] = [:]
  /// Whether it was said that no generation of clocks is left.
  var reportedNoGeneration = false
  var incarnation: Incarnation?

  var stores: [StoreIdentifier: StoreReplica] = [:]
  /// Bytes of an answer after which the rest waits; less only where pieces themselves are tested.
  package var pieceBytes = Limits.pieceBytes
  var sessions: [SessionID: Session] = [:]
  var addresses: [DeviceID: [String]]
  /// What devices are known to cover, also those that are away.
  var knowledge: [DeviceID: [StoreIdentifier: [ChainID: UInt64]]] = [:]
  /// What devices say that they cover, and others pass on.
  var hearsay = Hearsay()
  var lastSeen: [DeviceID: UInt64] = [:]
  /// What was heard of devices in handshakes since the start.
  var heard: [DeviceID: HeardOfDevice] = [:]
  /// What is still to be done about the roster, and when.
  var duties = MembershipDuties()
  /// Only for tests: whether this device behaves as if nobody had revoked it.
  var ignoresItsRevocation = false
  var counters = ReplicaStatus.Counters()
  /// What storage found damaged, until the start has seen to it.
  var damage = StorageDamage()
  /// Authors of whom a store took no more, and who were reported.
  var reportedOverLimit: [StoreIdentifier: Set<DeviceID>] = [:]
  /// Other processes of this very device that were met.
  var clones: Set<ProcessID> = []

  /// What the input at hand wants done.
  var effects: [Effect] = []
  /// How the message at hand may have much done at once.
  var repeater: InboundMessage.Repeater?
  private var wakeAt: UInt64?
  /// When to look again whether a clock that is ahead can be healed.
  private var healAt: UInt64?

  /// Makes a replica of all that storage holds.
  ///
  /// - Complexity: O(*n*) in the entries stored; each is opened.
  public init(
    account: AccountID, keys: DeviceKeys, snapshot: Snapshot,
    damage: StorageDamage = StorageDamage(), process: ProcessID, entropy: some Entropy
  ) throws(ReplicaError) {
    try self.init(
      account: account, keys: keys, outline: StorageOutline(snapshot, damage: damage),
      process: process, entropy: entropy
    ) { store, reference in snapshot.stores[store]?.changeSets[reference] }
  }

  /// Makes a replica of what storage holds. It reads change sets one by one, and keeps no box.
  ///
  /// - Complexity: O(*n*) in the entries stored; each is opened.
  public init(
    account: AccountID, keys: DeviceKeys, outline: StorageOutline, process: ProcessID,
    entropy: some Entropy,
    changeSet: (StoreIdentifier, ChangeSetReference) throws(StorageError) -> StoredChangeSet?
  ) throws(ReplicaError) {
    let snapshot = outline.snapshot
    var roster = Roster(account: account)
    var records: [Record] = []
    for (_, bytes) in snapshot.records.sorted(by: { $0.key < $1.key }) {
      guard let record = try? Record(decoding: bytes) else { throw .damagedRecord }
      records.append(record)
    }
    _ = roster.learn(all: records)
    // Its own certificate may be one of those for which there is no room any more.
    guard
      roster.certificate(of: keys.id) != nil || records.contains(where: { $0.certifies(keys.id) })
    else { throw .notAMember }
    self.init(
      keys: keys, roster: roster, process: process, entropy: entropy)
    timeKeeper.clock = HybridClock(latest: snapshot.clock)
    incarnation = snapshot.incarnation
    addresses = snapshot.addresses
    damage = outline.damage
    counters.damaged = damage.rows
    for (identifier, stored) in snapshot.stores.sorted(by: { $0.key < $1.key }) {
      do throws(StorageError) {
        stores[identifier] = try restored(
          identifier, stored, outline.changeSets[identifier] ?? []
        ) { (reference) throws(StorageError) in try changeSet(identifier, reference) }
      } catch {
        throw .storage(error)
      }
    }
    if damage.mayLackClock { timeKeeper.clock.witness(latestStored) }
  }

  /// Makes a replica that holds no store, of a roster in which the device is certified: where many
  /// devices hold the same records, they are read once.
  package init(
    keys: DeviceKeys, roster: Roster, process: ProcessID, entropy: some Entropy
  ) {
    account = roster.account
    self.keys = keys
    self.process = process
    self.entropy = entropy
    addresses = [:]
    self.roster = roster
    keyring = Keyring()
    keyring.refresh(from: roster, keys: keys)
    duties.revoked = roster.membership.revoked
  }

  /// Takes in one input and says what is to be done about it, in order.
  public mutating func handle(_ input: Input, at instant: Instant) -> [Effect] {
    timeKeeper.update(at: instant)
    switch input {
    case .connected, .tick: healIfAhead()
    default: break
    }
    switch input {
    case .start(let isCopy): start(isCopy: isCopy)
    case .clockStatus(let isSynchronised, let hasHardware):
      setClockStatus(isSynchronised: isSynchronised, hasHardware: hasHardware)
    case .acceptTime: healIfAhead(isAccepted: true)
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
    case .connected(let session, let peer): connect(session, to: peer)
    case .received(let session, let message): receive(message, on: session)
    case .writable(let session, let isWritable): setWritable(isWritable, session)
    case .room(let session): makeRoom(on: session)
    case .disconnected(let session): disconnect(session)
    case .tick: passTime()
    }
    requestWake()
    defer { effects = [] }
    return effects
  }

  /// Whether a `flush` has anything to do. The shell hands one in before each of its commits.
  public var needsFlush: Bool {
    stores.keys.contains(where: needsFlush)
  }

  /// A store is flushed when something of it is to be made durable or told, and when drafts that
  /// waited can be published at last.
  func needsFlush(_ identifier: StoreIdentifier) -> Bool {
    guard let store = stores[identifier] else { return false }
    return store.needsFlush || !store.drafts.isEmpty && canPublish(identifier)
  }

  // MARK: Time

  private mutating func passTime() {
    fulfilDutiesIfDue()
    for id in sessions.keys.sorted() {
      guard let session = sessions[id] else { continue }
      if now.monotonicMilliseconds >= session.openedAt + Limits.sessionMilliseconds {
        effects.append(.close(id, .aged))
      } else if now.monotonicMilliseconds >= session.nextHaveAt {
        if session.clocksDiffer {
          tellTime(on: id)
          waitForClock(on: id)
        } else {
          sendHave(on: id)
        }
      }
      applyEarly(on: id)
    }
    passOn()
    lookForLeftBehind()
  }

  private mutating func requestWake() {
    if !timeKeeper.isAhead {
      healAt = nil
    } else if healAt ?? 0 <= now.monotonicMilliseconds {
      healAt = now.monotonicMilliseconds + Limits.haveIntervalMilliseconds
    }
    let sessionsNext = sessions.values.map {
      min(
        $0.nextHaveAt, $0.openedAt + Limits.sessionMilliseconds, $0.early?.retryAt ?? .max)
    }.min()
    let statementAt = sessions.isEmpty ? nil : hearsay.nextAt
    let next = [sessionsNext, statementAt, duties.dueAt, healAt].compactMap(\.self).min()
    guard let next, next != wakeAt else { return }
    wakeAt = next
    effects.append(.wake(atMonotonicMilliseconds: next))
  }

  // MARK: Start

  private mutating func start(isCopy: Bool) {
    let isParted = dropDamage()
    if isCopy || isParted || incarnation == nil {
      takeNewIncarnation(isFirst: incarnation == nil)
    }
    for identifier in stores.keys.sorted() {
      guard var store = stores[identifier] else { continue }
      let recheck = store.recheckDrafts(author: keys.id)
      stores[identifier] = store
      tell(recheck, in: identifier)
    }
    scheduleDuties()
  }

  /// Makes durable and known what became of drafts on a state that changed below them.
  mutating func tell(_ recheck: StoreReplica.Recheck, in identifier: StoreIdentifier) {
    if !recheck.mutations.isEmpty { effects.append(.persist(recheck.mutations)) }
    if !recheck.refusals.isEmpty { effects.append(.refusals(identifier, recheck.refusals)) }
  }

  /// Whether this device has used up its incarnations, and publishes no more. Follows from what is
  /// stored, so that no restart forgets it.
  var isBarren: Bool {
    var used = usedIncarnations
    if let incarnation { used.remove(incarnation) }
    return used.count >= Limits.incarnations
  }

  /// The incarnations under which this device has published.
  var usedIncarnations: Set<Incarnation> {
    var used = Set<Incarnation>()
    for store in stores.values {
      used.formUnion(store.log.chains.keys.filter { $0.device == keys.id }.map(\.incarnation))
    }
    return used
  }

  /// This device runs in another process as well, or did: says so, and parts from it.
  mutating func meetClone() {
    counters.clones += 1
    effects.append(.report(.clone(keys.id)))
    takeNewIncarnation()
  }

  /// Goes on under a new incarnation (`Docs/Protocol.md`, "Entries and change sets"); one beyond
  /// the limit is never used.
  mutating func takeNewIncarnation(isFirst: Bool = false) {
    let fresh = drawIncarnation()
    incarnation = fresh
    effects.append(.persist([.setIncarnation(fresh), .setClock(clock.latest)]))
    if isBarren {
      effects.append(.report(.tooManyIncarnations))
    } else if !isFirst {
      effects.append(.report(.newIncarnation))
    }
  }

  mutating func drawIncarnation() -> Incarnation {
    let drawn = entropy.draw(Digest128.self).bytes.prefix(8)
    return Incarnation(rawValue: drawn.reduce(0) { $0 << 8 | UInt64($1) })
  }

  // MARK: Stores

  private mutating func open(_ identifier: StoreIdentifier, policy: Policy) {
    guard policy.isWithinBounds else {
      effects.append(.refusedStore(identifier, .policyOutOfBounds(policy)))
      return
    }
    if let store = stores[identifier] {
      if !store.isOpened { markOpened(identifier) }
      if store.policy != policy {
        changePolicy(of: identifier, to: policy)
      } else if !store.isOpened {
        // More of it is kept from here on.
        for id in sessions.keys.sorted() where sessions[id]?.isExchanging == true {
          sendHave(on: id, only: [identifier])
        }
      }
      return
    }
    guard stores.count < Limits.stores else {
      effects.append(.refusedStore(identifier, .tooManyStores(limit: Limits.stores)))
      return
    }
    create(identifier, policy: policy)
    markOpened(identifier)
    // Peers that do not have it yet begin it; those that do answer.
    for id in sessions.keys.sorted() where sessions[id]?.isExchanging == true {
      sendHave(on: id, only: [identifier])
    }
  }

  /// A program on this host wants the store.
  private mutating func markOpened(_ identifier: StoreIdentifier) {
    stores[identifier]?.isOpened = true
    effects.append(.persist([.setOpened(identifier)]))
  }

  /// Begins a store with nothing in it.
  mutating func create(_ identifier: StoreIdentifier, policy: Policy) {
    stores[identifier] = StoreReplica(identifier: identifier, policy: policy)
    effects.append(.persist([.putStore(identifier, policy)]))
  }

  private mutating func changePolicy(of identifier: StoreIdentifier, to policy: Policy) {
    guard var store = stores[identifier] else { return }
    reportedOverLimit[identifier] = nil
    let old = store.state.shown
    store.state = store.state.under(policy)
    let recheck = store.recheckDrafts(author: keys.id)
    let changes = store.state.changes(since: old)
    if !changes.isEmpty {
      effects.append(
        .view(
          ViewChange(
            store: identifier, reason: .quotaViolationChange,
            changes: changes,
            superseded: recheck.refused.sorted())))
    }
    effects.append(.persist([.putStore(identifier, policy)]))
    tell(recheck, in: identifier)
    stores[identifier] = store
    for id in sessions.keys.sorted() where sessions[id]?.isExchanging == true {
      sessions[id]?.mismatched.remove(identifier)
      sendHave(on: id, only: [identifier])
    }
  }

  private mutating func takeRefusals(of identifier: StoreIdentifier, through number: UInt64) {
    guard let mutations = stores[identifier]?.takeRefusals(through: number), !mutations.isEmpty
    else { return }
    effects.append(.persist(mutations))
    effects.append(.progress)
  }
}

/// Why a replica cannot be made of what storage holds.
public enum ReplicaError: Error, Hashable, Sendable {
  /// A membership record cannot be read.
  case damagedRecord
  /// The records do not make this device a member of the account.
  case notAMember
  /// Storage cannot be read.
  case storage(StorageError)
}
