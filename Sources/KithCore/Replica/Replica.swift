package import KithCrypto

/// One device's replica of its account's stores, as a value: inputs come in with the time, effects
/// go out in order, and nothing else happens. It does no I/O, starts no task, reads no clock and
/// makes no randomness, so the same code runs in production, in the simulator and in fuzzers.
///
/// The rule of the effects: a `persist` precedes every effect that depends on it, and the shell
/// never reorders. After a commit fails, throw the replica away and make a new one from what
/// storage holds.
package struct Replica: Sendable {
  let process: ProcessID
  var entropy: any Entropy
  var members: Members
  var timeKeeper = TimeKeeper()
  /// Devices whose clock differed too much when they were last heard.
  var clockDifferences: [DeviceID: NodeStatus.ClockDifference] = [:]
  /// Whether it was said that no generation of clocks is left.
  var reportedNoGeneration = false
  var incarnation: Incarnation?

  var stores: [StoreIdentifier: StoreReplica] = [:]
  /// Bytes of an answer after which the rest waits; less only in tests of the pieces themselves.
  package var pieceBytes = Limits.pieceBytes
  var links: [SessionID: Link] = [:]
  var contacts = Contacts()
  /// The coverage of stores by devices.
  var coverage: Coverage
  var counters = NodeStatus.Counters()
  /// The damage that storage found, until the start drops it.
  var damage = StorageDamage()
  /// Other processes of this very device that were met.
  var clones: Set<ProcessID> = []

  /// The effects of the input at hand.
  var effects: [Effect] = []
  /// The repeater of the message at hand, which does many things at once.
  var repeater: InboundMessage.Repeater?
  private var wakeAt: UInt64?
  /// When to look again whether a clock that is ahead can be healed.
  private var healAt: UInt64?

  /// Makes a replica of all that storage holds.
  ///
  /// - Complexity: O(*n*) in the entries stored; each is opened.
  package init(
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
  package init(
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
    // The roster may have no space for the device's own certificate any more.
    guard
      roster.certificate(of: keys.id) != nil || records.contains(where: { $0.certifies(keys.id) })
    else { throw .notAMember }
    self.init(
      keys: keys, roster: roster, process: process, entropy: entropy)
    timeKeeper.clock = HybridClock(latest: snapshot.clock)
    incarnation = snapshot.incarnation
    contacts = Contacts(snapshot.addresses)
    damage = outline.damage
    counters.damaged = damage.rows
    for (identifier, stored) in snapshot.stores.sorted(by: { $0.key < $1.key }) {
      do throws(StorageError) {
        let restored = try StoreReplica.restored(
          identifier, stored, outline.changeSets[identifier] ?? [], by: judge, &members.keyring
        ) { (reference) throws(StorageError) in try changeSet(identifier, reference) }
        stores[identifier] = restored.store
        counters.damaged += restored.damaged
      } catch {
        throw .storage(error)
      }
    }
    if damage.mayLackClock {
      timeKeeper.clock.witness(stores.values.lazy.map(\.latestStored).max() ?? .zero)
    }
  }

  /// Makes a replica that holds no store, of a roster in which the device is certified. So if many
  /// devices hold the same records, the records are read once.
  package init(
    keys: DeviceKeys, roster: Roster, process: ProcessID, entropy: some Entropy
  ) {
    members = Members(of: roster, keys: keys)
    self.process = process
    self.entropy = entropy
    coverage = Coverage(device: keys.id)
    coverage.setMembers(roster.sortedMembers.map(\.device))
  }

  /// The account.
  package var account: AccountID { roster.account }
  /// The account's membership.
  package var roster: Roster { members.roster }
  /// The epochs' keys that this device holds.
  package var keyring: Keyring { members.keyring }
  var keys: DeviceKeys { members.keys }

  /// Takes in one input and returns the effects to carry out, in order.
  package mutating func handle(_ input: Input, at instant: Instant) -> [Effect] {
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
  package var needsFlush: Bool {
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
    // The wake that was asked for has come.
    wakeAt = nil
    fulfilDutiesIfDue()
    passTimeOnLinks()
    passOn()
    lookForLeftBehind()
  }

  private mutating func requestWake() {
    if !timeKeeper.isAhead {
      healAt = nil
    } else if healAt ?? 0 <= now.monotonicMilliseconds {
      healAt = now.monotonicMilliseconds + Limits.haveIntervalMilliseconds
    }
    let linksAt = links.values.lazy.map(\.wakeAt).min()
    // A joiner has no duties yet.
    let dutiesAt = isJoining ? nil : members.duties.dueAt
    let next = [linksAt, coverage.dueAt, dutiesAt, healAt].compactMap(\.self).min()
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
    let author = keys.id
    for identifier in stores.keys.sorted() {
      guard let outcome = stores[identifier]?.start(author: author) else { continue }
      carryOut(outcome, in: [identifier])
    }
    scheduleDuties()
  }

  /// Whether this device has used up its incarnations, and publishes no more. Follows from the
  /// stored data, so that no restart forgets it.
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

  /// This device runs in another process as well, or did: reports that, and goes on under a new
  /// incarnation.
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
}

/// Why a replica cannot be made of what storage holds.
package enum ReplicaError: Error, Hashable, Sendable {
  /// A membership record cannot be read.
  case damagedRecord
  /// The records do not make this device a member of the account.
  case notAMember
  /// Storage cannot be read.
  case storage(StorageError)
}
