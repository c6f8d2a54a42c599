internal import KithCore
internal import KithCrypto

/// Measures the spread of a change: the production core and overlay, in virtual time, from one
/// seed. It has no faults, real disks or checkers, so that hundreds of devices fit.
///
/// After the overlay has formed, devices write in turn. The traffic of a write counts until its
/// writer knows that every device has it.
package struct Spread {
  package struct Setup: Codable, Hashable, Sendable {
    package var devices: Int
    package var seed: UInt64
    package var changes: Int
    /// One way, in microseconds, at least and at most.
    package var latency: ClosedRange<UInt64>
    package var commitMicroseconds: UInt64

    package init(devices: Int, seed: UInt64 = 1, changes: Int = 3) {
      self.devices = devices
      self.seed = seed
      self.changes = changes
      latency = 5_000...30_000
      commitMicroseconds = 2_000
    }
  }

  static let store = StoreIdentifier("com.example.Spread") ?? { preconditionFailure() }()
  /// The longest wait for a write.
  private static let patience: UInt64 = 600_000_000
  private static let planMicroseconds: UInt64 = 1_000_000

  let setup: Setup
  var chance: SeededEntropy
  var devices: [SpreadDevice] = []
  private var numbers: [DeviceID: Int] = [:]
  private let ids: [DeviceID]
  private let account: AccountID
  var now: UInt64 = 0
  private var queue = EventQueue<Event>()
  private var nextSession: UInt64 = 1
  private var lastMessage: (bytes: [UInt8], message: InboundMessage)?
  private var lastArrivals: [Route: UInt64] = [:]
  var followed: FollowedChange?

  private struct Route: Hashable {
    var from: Int
    var session: SessionID
  }

  private enum Event {
    case deliver(to: Int, from: Int, SessionID, InboundMessage)
    case tick(Int, atMonotonic: UInt64)
    case plan(Int)
    case established(Int, Int)
  }

  /// The same setup gives the same figures.
  package static func run(_ setup: Setup) -> SpreadResult {
    var spread = Spread(setup)
    return spread.run()
  }

  private init(_ setup: Setup) {
    self.setup = setup
    chance = SeededEntropy(seed: setup.seed ^ 0x5350_5245_4144_0001)
    let founder = Founder(devices: setup.devices, entropy: &chance)
    account = founder.account
    // All have the same records, read once.
    let roster = founder.roster
    ids = founder.members.map(\.keys.id).sorted()
    for (number, member) in founder.members.enumerated() {
      let process = ProcessID(chance.draw())
      let replica = Replica(
        keys: member.keys, roster: roster, process: process,
        entropy: SeededEntropy(seed: chance.next()))
      devices.append(
        SpreadDevice(
          keys: member.keys, replica: replica, overlay: OverlayPlan(seed: chance.next())))
      numbers[member.keys.id] = number
    }
  }

  private mutating func run() -> SpreadResult {
    for number in devices.indices {
      hand(.start(isCopy: false), to: number)
      hand(.open(Self.store, .standard), to: number)
      queue.add(.plan(number), at: chance.next() % Self.planMicroseconds)
    }
    var result = SpreadResult(setup: setup)
    // The overlay forms.
    pass(until: now + 120_000_000)
    let degrees = devices.map(\.sessions.count)
    result.connections = SpreadResult.Range(degrees.map(UInt64.init))
    for _ in 0..<setup.changes {
      let knownAt = follow(Int(chance.next() % UInt64(devices.count)))
      // Messages under way arrive before the next write, and count too.
      pass(until: now + 30_000_000)
      result.changes.append(SpreadResult.Change(followed, knownAt: knownAt))
      followed = nil
    }
    return result
  }

  // MARK: Writes

  /// Returns the time at which the writer knew that all have its write; nil: never.
  private mutating func follow(_ writer: Int) -> UInt64? {
    let replica = devices[writer].replica
    let sequence =
      (replica.covered(of: Self.store).filter { $0.key == replica.ownChain }.values.first ?? 0) + 1
    followed = FollowedChange(
      chain: replica.ownChain, sequence: sequence, writer: writer, devices: devices.count,
      startedAt: now)
    let value =
      (try? EncodedValue(.string(String(repeating: "v", count: 100)))) ?? EncodedValue(trusting: [])
    hand(
      .write(
        WriteID(rawValue: sequence), Self.store,
        [KithCore.Operation(key: "key\(writer)", value: value)]), to: writer)
    pass(while: { !($0.followed?.isEverywhere ?? true) })
    if let followed, followed.isEverywhere { self.followed?.everywhereAt = now }
    pass(while: { spread in
      !spread.devices[writer].replica.holders(of: Self.store).allSatisfy(\.value)
    })
    let isKnown = devices[writer].replica.holders(of: Self.store).allSatisfy(\.value)
    return isKnown ? now : nil
  }

  // MARK: Time

  private mutating func pass(until end: UInt64) {
    while let next = queue.next(until: end) {
      now = next.time
      happen(next.event)
    }
    now = end
  }

  private mutating func pass(while condition: (Self) -> Bool) {
    let limit = now + Self.patience
    while now < limit, condition(self) { pass(until: now + 10_000) }
  }

  private mutating func happen(_ event: Event) {
    switch event {
    case .deliver(let to, let from, let session, let message):
      guard devices[to].sessions[session] != nil else { return }
      followed?.note(message, from: from, to: to, at: now, store: Self.store)
      hand(.received(session, message), to: to)
    case .tick(let number, let reading):
      guard devices[number].tickAt == reading else { return }
      devices[number].tickAt = nil
      hand(.tick, to: number)
    case .plan(let number):
      plan(number)
      queue.add(.plan(number), at: now + Self.planMicroseconds)
    case .established(let from, let to): connect(from, to)
    }
  }

  private var instant: Instant {
    Instant(
      wallMilliseconds: UInt64(HostClock.origin) + now / 1_000, monotonicMilliseconds: now / 1_000)
  }

  // MARK: Shells

  private mutating func hand(_ input: Input, to number: Int) {
    carryOut(devices[number].replica.handle(input, at: instant), of: number)
    guard devices[number].replica.needsFlush else { return }
    carryOut(devices[number].replica.handle(.flush, at: instant), of: number)
  }

  private mutating func carryOut(_ effects: [Effect], of number: Int) {
    var delay: UInt64 = 0
    for effect in effects {
      switch effect {
      case .persist(let mutations):
        delay = setup.commitMicroseconds
        try? devices[number].disk.commit(mutations)
      case .send(let session, let bytes), .sendEarly(let session, let bytes):
        send(bytes, on: session, from: number, delay: delay)
      case .sendStored(let session, let batch):
        var messages: [[UInt8]] = []
        _ = try? batch.forEachMessage(from: devices[number].disk) { messages.append($0) }
        for message in messages { send(message, on: session, from: number, delay: delay) }
      case .close(let session, _): disconnect(session, of: number)
      case .wake(let reading):
        devices[number].tickAt = reading
        queue.add(.tick(number, atMonotonic: reading), at: max(now, reading * 1_000))
      case .leftBehind(let behind): devices[number].overlay.setLeftBehind(behind)
      case .awaitDrain(let session):
        carryOut(devices[number].replica.handle(.drained(session), at: instant), of: number)
      default: break
      }
    }
  }

  private mutating func send(
    _ bytes: [UInt8], on session: SessionID, from number: Int, delay: UInt64
  ) {
    guard let peer = devices[number].sessions[session]?.peer else { return }
    if lastMessage?.bytes != bytes {
      guard let message = InboundMessage(decoding: bytes, account: account) else { return }
      lastMessage = (bytes, message)
    }
    guard let message = lastMessage?.message else { return }
    followed?.count(message.traffic, bytes: bytes.count)
    let route = Route(from: number, session: session)
    let time = max(
      now + delay + UInt64.random(in: setup.latency, using: &chance), lastArrivals[route] ?? 0)
    lastArrivals[route] = time
    queue.add(.deliver(to: peer, from: number, session, message), at: time)
  }

  // MARK: The overlay

  private mutating func plan(_ number: Int) {
    let own = devices[number].keys.id
    let peers = devices[number].sessions.mapValues { session in
      OverlayPlan.Peer(
        device: devices[session.peer].keys.id, origin: session.isDialled ? .drawn : .accepted,
        openedAt: session.openedAt / 1_000)
    }
    let decision = devices[number].overlay.decide(
      candidates: ids.filter { $0 != own }, peers: peers, at: now / 1_000)
    for session in decision.closes { disconnect(session, of: number) }
    let connected = Set(devices[number].sessions.values.map(\.peer))
    for device in decision.dials.sorted() {
      guard let other = numbers[device], !connected.contains(other) else { continue }
      queue.add(
        .established(number, other), at: now + 3 * UInt64.random(in: setup.latency, using: &chance))
    }
  }

  private mutating func connect(_ from: Int, _ to: Int) {
    guard !devices[from].sessions.values.contains(where: { $0.peer == to }) else { return }
    let session = SessionID(rawValue: nextSession)
    nextSession += 1
    devices[from].sessions[session] = .init(peer: to, isDialled: true, openedAt: now)
    devices[to].sessions[session] = .init(peer: from, isDialled: false, openedAt: now)
    let ends = [peer(to, isDialled: true), peer(from, isDialled: false)]
    hand(.connected(session, ends[0]), to: from)
    hand(.connected(session, ends[1]), to: to)
  }

  private func peer(_ number: Int, isDialled: Bool) -> SessionPeer {
    SessionPeer(
      transportKey: devices[number].keys.transportPublicKey,
      hello: devices[number].replica.hello(port: 0, at: instant), isDialled: isDialled,
      address: "127.0.0.1:4114")
  }

  private mutating func disconnect(_ session: SessionID, of number: Int) {
    guard let end = devices[number].sessions.removeValue(forKey: session) else { return }
    let other = devices[end.peer].sessions.removeValue(forKey: session)
    lastArrivals[Route(from: number, session: session)] = nil
    lastArrivals[Route(from: end.peer, session: session)] = nil
    hand(.disconnected(session), to: number)
    guard let other else { return }
    if other.isDialled { devices[end.peer].overlay.lost(devices[number].keys.id, at: now / 1_000) }
    hand(.disconnected(session), to: end.peer)
  }
}

struct SpreadDevice {
  struct Session {
    var peer: Int
    var isDialled: Bool
    var openedAt: UInt64
  }

  let keys: DeviceKeys
  var replica: Replica
  let disk = MemoryStorage()
  var overlay: OverlayPlan
  var sessions: [SessionID: Session] = [:]
  var tickAt: UInt64?
}
