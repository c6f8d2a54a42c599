import KithCrypto
import Testing

@testable import KithCore

/// Devices of one account, their disks and the links between them, in one thread and one order:
/// the same seed gives the same run.
final class TestWorld {
  /// One device with its disk. Only the disk survives ``TestWorld/restart(_:)``.
  final class Device {
    let name: String
    let keys: DeviceKeys
    var storage: MemoryStorage
    var shell: Shell
    /// The views of programs, updated by view changes alone.
    var views: [StoreIdentifier: [Key: EncodedValue]] = [:]
    var viewChanges: [ViewChange] = []
    var reports: [Report] = []
    var accepted: [WriteID] = []
    var refused: [WriteID: WriteError] = [:]
    var refusedStores: [StoreIdentifier: OpenError] = [:]
    var refusedMembership: [MembershipError] = []
    var durable: Set<WriteID> = []
    var closed: [CloseReason] = []
    /// Whether a join has pulled everything.
    var hasPulledAll = false
    var leftBehind: [DeviceID] = []
    var process: ProcessID
    /// The run of its host; nil: unknown, so it sends nothing early.
    var boot: BootID?
    /// The change sets that this device has sent under its own sequences.
    var given: [StoreIdentifier: [ChainID: [UInt64: Digest256]]] = [:]

    init(name: String, keys: DeviceKeys, disk: Snapshot, replica: Replica, process: ProcessID) {
      self.name = name
      self.keys = keys
      storage = MemoryStorage(disk)
      shell = Shell(replica)
      self.process = process
    }

    var replica: Replica {
      get { shell.replica }
      _modify { yield &shell.replica }
    }

    var disk: Snapshot {
      get { (try? storage.load()) ?? Snapshot() }
      set { storage = MemoryStorage(newValue) }
    }
  }

  /// One direction of a session.
  struct Pipe {
    var to: Int
    var session: SessionID
    var messages: [[UInt8]] = []
    /// Whether the sender is to be told when it is empty.
    var isDrainAwaited = false
    /// The most bytes that it held.
    var mostBytes = 0

    mutating func noteBytes() {
      mostBytes = max(mostBytes, messages.reduce(0) { $0 + $1.count })
    }

    var isIdle: Bool { messages.isEmpty && !isDrainAwaited }
  }

  struct Link {
    var ends: [Pipe]
  }

  let account: AccountID
  var devices: [Device] = []
  var random: SeededEntropy
  /// When each run begins, in milliseconds since 1970: later than the software's release.
  static let origin: UInt64 = 1_800_000_000_000
  var now = Instant(wallMilliseconds: origin, monotonicMilliseconds: 0)
  /// Milliseconds added to a device's wall clock.
  var clockErrors: [Int: Int64] = [:]
  var links: [[Int]: Link] = [:]
  /// The objects on carriers, and the orders that ``turn(of:on:)`` has not carried out.
  var carriers: [CarrierID: [ObjectName: [UInt8]]] = [:]
  var orders: [(device: Int, carrier: CarrierID, order: CarrierOrder)] = []
  /// May alter or drop a message on its way.
  var tamper: ((_ from: Int, _ to: Int, _ message: [UInt8]) -> [UInt8]?)?
  private var nextSession: UInt64 = 1
  /// The last sequence that ``publish(_:by:to:)`` gave.
  var forged: UInt64 = 0
  private var nextWrite: UInt64 = 1
  private(set) var writes: [WriteID: [KithCore.Operation]] = [:]
  /// As what a write was taken in, if it was and changes anything.
  private(set) var drafts: [WriteID: LocalWrite] = [:]

  static let store = StoreIdentifier("com.example.Tests") ?? { preconditionFailure() }()

  /// An account of so many devices, which have never met but in pairing. The first created it.
  init(devices count: Int, seed: UInt64, policy: Policy = .standard) throws {
    random = SeededEntropy(seed: seed)
    let founder = Founder(devices: count, entropy: &random)
    account = founder.account
    for (index, member) in founder.members.enumerated() {
      try add(member.keys, disk: member.snapshot)
      perform(.open(Self.store, policy), on: index)
    }
  }

  func add(_ keys: DeviceKeys, disk: Snapshot, isCopy: Bool = false) throws {
    let process = ProcessID(random.draw())
    let replica = try makeReplica(keys, disk, process)
    devices.append(
      Device(
        name: "device \(devices.count)", keys: keys, disk: disk, replica: replica,
        process: process))
    begin(devices.count - 1, isCopy: isCopy)
  }

  private func makeReplica(
    _ keys: DeviceKeys, _ disk: Snapshot, _ process: ProcessID,
    _ damage: StorageDamage = StorageDamage()
  ) throws -> Replica {
    let seed = random.draw(Digest128.self).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    return try Replica(
      account: account, keys: keys, snapshot: disk, damage: damage, process: process,
      entropy: SeededEntropy(seed: seed))
  }

  private func begin(_ index: Int, isCopy: Bool) {
    let device = devices[index]
    perform(.start(isCopy: isCopy, boot: device.boot), on: index)
    for store in device.replica.storeIdentifiers {
      device.views[store] = device.replica.view(of: store)
    }
  }

  /// Kills a device and starts it from its disk, as it was.
  func restart(
    _ index: Int, isCopy: Bool = false, damage: StorageDamage = StorageDamage()
  ) throws {
    for other in devices.indices where other != index { disconnect(index, other) }
    let device = devices[index]
    device.process = ProcessID(random.draw())
    device.shell = Shell(try makeReplica(device.keys, device.disk, device.process, damage))
    begin(index, isCopy: isCopy)
  }

  /// A further device, which joins through another. It has all that the other has, which is the only one
  /// that knows it.
  func join(by index: Int = 0) throws {
    let (joiner, session) = try beginJoin(by: index)
    for _ in 0..<100_000 where !devices[joiner].hasPulledAll {
      flush(index)
      flush(joiner)
      guard deliverOne(on: [[index, joiner]]) else { break }
    }
    #expect(devices[joiner].hasPulledAll, "the join did not end")
    endJoin(of: joiner, on: session)
    while deliverOne(on: [[index, joiner]]) { flush(index) }
    let policy = devices[index].replica.usage(of: Self.store)?.policy ?? .standard
    perform(.open(Self.store, policy), on: joiner)
  }

  /// The joiner's last word.
  func endJoin(of joiner: Int, on session: SessionID) {
    carryOut(.send(session, JoinDone().encodedMessage()), on: joiner)
  }

  /// A further device that another has confirmed, as the session of its join begins.
  func beginJoin(by index: Int = 0) throws -> (joiner: Int, session: SessionID) {
    let keys = Founder.makeKeys(&random)
    let host = devices[index]
    let request = try JoinRequest.make(account: account, keys: keys, name: "late", issued: 3)
    let records = try JoinRequest.accept(
      request, roster: host.replica.roster, keyring: host.replica.keyring, keys: host.keys,
      entropy: &random)
    var roster = host.replica.roster
    _ = roster.learn(all: records)
    var disk = Snapshot()
    for record in roster.records { disk.records[record.id] = record.encoded }
    try add(keys, disk: disk)
    let joiner = devices.count - 1
    let session = SessionID(rawValue: nextSession)
    nextSession += 1
    links[[index, joiner]] = Link(
      ends: [Pipe(to: joiner, session: session), Pipe(to: index, session: session)])
    let clock = host.replica.hybridClock
    perform(.admit(session, Joiner(records: records, address: "127.0.0.1:5000")), on: index)
    perform(
      .join(session, Inviter(device: host.keys.id, clock: clock, address: "127.0.0.1:5001")),
      on: joiner)
    return (joiner, session)
  }

  // MARK: Inputs

  func instant(of index: Int) -> Instant {
    var instant = now
    instant.wallMilliseconds = UInt64(
      Int64(instant.wallMilliseconds) + (clockErrors[index] ?? 0))
    return instant
  }

  /// Hands in an input and does the work that follows, but no flush of itself.
  func perform(_ input: Input, on index: Int) {
    let device = devices[index]
    var shown: [StoreIdentifier: [Key: EncodedValue]]?
    if case .flush = input { shown = device.replica.shownValues }
    guard case .handled(let effects) = device.shell.handle(input, at: instant(of: index)) else {
      Issue.record("\(device.name) takes no input")
      return
    }
    for effect in effects { carryOut(effect, on: index) }
    drain(index)
    guard let shown else { return }
    // Worked out anew: publishing does not even look.
    for (identifier, store) in device.replica.stores {
      var state = store.state
      _ = state.refresh(state.slots.keys)
      #expect(
        (state.shown.mapValues(\.value) == shown[identifier]) as Bool,
        "publishing changed what \(device.name) shows")
    }
  }

  private func drain(_ index: Int) {
    let device = devices[index]
    while case .round(var round) = device.shell.next(at: instant(of: index)) {
      do {
        try round.fill(from: device.storage)
        for effect in round.beforeCommit { carryOut(effect, on: index) }
        try device.storage.commit(round.mutations)
      } catch {
        Issue.record(error)
      }
      checkClock(round.mutations, on: device)
      if round.afterCommit.contains(where: { if case .durable = $0 { true } else { false } }) {
        checkIsDurable(device)
      }
      for effect in round.earlySends + round.afterCommit { carryOut(effect, on: index) }
      _ = device.shell.committed()
    }
  }

  func carryOut(_ effect: Effect, on index: Int) {
    let device = devices[index]
    switch effect {
    case .send(let session, let message), .sendEarly(let session, let message):
      checkIsDurable(message, on: device)
      guard let (key, end) = find(session, from: index) else { return }
      links[key]?.ends[end].messages.append(message)
      links[key]?.ends[end].noteBytes()
    case .sendStored(let session, let batch):
      var messages: [[UInt8]] = []
      let missing = try? batch.forEachMessage(from: device.storage) { messages.append($0) }
      #expect(missing == 0, "\(device.name) sends what its disk lacks")
      for message in messages { carryOut(.send(session, message), on: index) }
    case .awaitDrain(let session):
      guard let (key, end) = find(session, from: index) else { return }
      links[key]?.ends[end].isDrainAwaited = true
    case .close(let session, let reason):
      device.closed.append(reason)
      guard let (key, end) = find(session, from: index), let link = links[key] else { return }
      links[key] = nil
      perform(.disconnected(session), on: index)
      // Messages that were sent before arrive first.
      for message in reason == .revoked ? link.ends[end].messages : [] {
        guard let inbound = InboundMessage(decoding: message, account: account) else { continue }
        perform(.received(link.ends[1 - end].session, inbound), on: link.ends[end].to)
      }
      perform(.disconnected(link.ends[1 - end].session), on: link.ends[end].to)
    case .carrier(let id, let order): orders.append((index, id, order))
    case .accepted(let id): device.accepted.append(id)
    case .refused(let id, let error): device.refused[id] = error
    case .refusedStore(let store, let error): device.refusedStores[store] = error
    case .refusedMembership(let error): device.refusedMembership.append(error)
    case .durable(let id): device.durable.insert(id)
    case .view(let change):
      device.viewChanges.append(change)
      for (key, value) in change.changes { device.views[change.store, default: [:]][key] = value }
    case .report(let report): device.reports.append(report)
    case .leftBehind(let devices): device.leftBehind = devices
    case .pulledAll: device.hasPulledAll = true
    case .persist, .promote, .progress, .addresses, .wake: break
    }
  }

  /// The link on which `from` sends under a session.
  private func find(_ session: SessionID, from: Int) -> (key: [Int], end: Int)? {
    for (key, link) in links {
      for end in 0...1 where link.ends[end].session == session && link.ends[1 - end].to == from {
        return (key, end)
      }
    }
    return nil
  }

  /// Writes on a device, and flushes unless told otherwise.
  @discardableResult
  func write(
    _ operations: [KithCore.Operation], on index: Int, flush: Bool = true,
    in store: StoreIdentifier = store
  ) -> WriteID {
    let id = WriteID(rawValue: nextWrite)
    nextWrite += 1
    writes[id] = operations
    let before = devices[index].replica.hybridClock
    perform(.write(id, store, operations), on: index)
    let written = operations.joined.compactMap { operation in
      devices[index].replica.stores[store]?.drafts[Key(operation.key)]
    }.filter { $0.clock > before }
    if let draft = written.first {
      drafts[id] = LocalWrite(clock: draft.clock, operations: written.map(\.operation))
    }
    if flush { self.flush(index) }
    return id
  }

  func flush(_ index: Int) {
    if devices[index].replica.needsFlush { perform(.flush, on: index) }
  }

  // MARK: Links

  /// `underOlderEpoch`: so the listener says, that is b, as a had no other; `dialledUnderOlder`: so
  /// says the dialler, as b had no other.
  func connect(
    _ a: Int, _ b: Int, underOlderEpoch: Bool = false, dialledUnderOlder: Bool = false
  ) {
    let key = [min(a, b), max(a, b)]
    guard links[key] == nil else { return }
    let session = SessionID(rawValue: nextSession)
    nextSession += 1
    // End 0 carries what a sends to b, end 1 what b sends to a; both know it by one number.
    links[key] = Link(ends: [Pipe(to: b, session: session), Pipe(to: a, session: session)])
    var listener = peer(b, isDialled: true)
    listener.isMembershipOnly = dialledUnderOlder
    perform(.connected(session, listener), on: a)
    var dialler = peer(a, isDialled: false)
    dialler.isMembershipOnly = underOlderEpoch
    perform(.connected(session, dialler), on: b)
  }

  private func peer(_ index: Int, isDialled: Bool) -> SessionPeer {
    let device = devices[index]
    return SessionPeer(
      transportKey: device.keys.transportPublicKey,
      hello: device.replica.hello(port: UInt16(4_000 + index), at: instant(of: index)),
      isDialled: isDialled, address: "127.0.0.1:\(4_000 + index)")
  }

  func disconnect(_ a: Int, _ b: Int) {
    let key = [min(a, b), max(a, b)]
    guard let link = links.removeValue(forKey: key) else { return }
    for pipe in link.ends { perform(.disconnected(pipe.session), on: pipe.to) }
  }

  /// Neither side notices that a session carries nothing any more.
  func hang(_ a: Int, _ b: Int) { links[[min(a, b), max(a, b)]] = nil }

  /// Makes devices of one account that are all connected, and have exchanged everything.
  static func connected(
    devices count: Int, seed: UInt64, policy: Policy = .standard
  ) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed, policy: policy)
    world.connectAll()
    world.settle()
    return world
  }

  func connectAll() {
    for a in devices.indices { for b in devices.indices where a < b { connect(a, b) } }
  }

  func disconnectAll() {
    for key in links.keys.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      disconnect(key[0], key[1])
    }
  }

  /// Delivers messages, one at a time and in a random order of links, until none is left.
  func settle(limit: Int = 200_000) {
    for _ in 0..<limit {
      for index in devices.indices { flush(index) }
      guard deliverOne() else { return }
    }
    Issue.record("messages never end")
  }

  /// Delivers one message from a random pipe, or tells a device that waits for room that the pipe
  /// is empty; false if there is nothing to do.
  func deliverOne(on some: [[Int]]? = nil) -> Bool {
    let keys = (some ?? Array(links.keys)).filter { links[$0] != nil }
    let waiting = keys.sorted { $0.lexicographicallyPrecedes($1) }.flatMap { key in
      (0...1).compactMap { end in
        links[key]?.ends[end].isIdle == false ? (key, end) : nil
      }
    }
    guard let (key, end) = waiting.randomElement(using: &random),
      let pipe = links[key]?.ends[end], let from = links[key]?.ends[1 - end].to
    else { return false }
    guard var message = pipe.messages.first else {
      links[key]?.ends[end].isDrainAwaited = false
      perform(.drained(pipe.session), on: from)
      return true
    }
    links[key]?.ends[end].messages.removeFirst()
    if let tamper {
      guard let altered = tamper(from, pipe.to, message) else { return true }
      message = altered
    }
    if let inbound = InboundMessage(decoding: message, account: account) {
      perform(.received(pipe.session, inbound), on: pipe.to)
    } else {
      Issue.record("a malformed message")
    }
    return true
  }

  /// Lets virtual time pass, with what is due in it.
  func advance(milliseconds: UInt64) {
    now.wallMilliseconds += milliseconds
    now.monotonicMilliseconds += milliseconds
    for index in devices.indices { perform(.tick, on: index) }
  }
}

extension Replica {
  fileprivate var shownValues: [StoreIdentifier: [Key: EncodedValue]] {
    stores.mapValues { $0.state.shown.mapValues(\.value) }
  }
}
