internal import Kith
internal import KithCore
internal import KithCrypto
internal import Synchronization

/// The links between a test's devices, in virtual time, without threads: the sender of a message
/// delivers it, unless another call is delivering.
final class VirtualNetwork: Sendable {
  struct Host {
    var device: VirtualDevice
    let keys: DeviceKeys
    let storage: MemoryStorage
    /// The stores that the program has open.
    var stores: [StoreIdentifier: (store: KeyValueStore, policy: Policy)] = [:]
    /// The local data; nil before the first sign-out.
    var local: LocalStores?
    /// The local device that the stores show while signed out; nil while signed in.
    var signedOut: VirtualDevice?
  }

  /// An account that no other device can join.
  struct LocalStores {
    let account: AccountID
    let keys: DeviceKeys
    let storage: MemoryStorage
  }

  struct Faults {
    var delay = Duration.zero
    /// The chances, 0 to 1, of each message.
    var loss = 0.0
    var duplication = 0.0
  }

  fileprivate enum Event {
    case message([UInt8], to: Int, SessionID)
    case drained(Int, SessionID)
    case ended(Int, SessionID)
    case connect([Int])
  }

  fileprivate struct Session {
    let sides: [(device: Int, session: SessionID)]
    /// Whether a device joins over it: it has no faults, and does not reconnect.
    var isPairing = false
    /// The arrival of the last message to each side.
    var lastArrival: [UInt64] = [0, 0]
  }

  fileprivate struct State {
    var hosts: [Host] = []
    var cuts: Set<[Int]> = []
    var sessions: [[Int]: Session] = [:]
    /// The devices of each session of `sessions`, and the end to which the id belongs.
    var ends: [SessionID: (pair: [Int], end: Int)] = [:]
    var events: [(time: UInt64, order: UInt64, event: Event)] = []
    var nextSession: UInt64 = 1
    var nextOrder: UInt64 = 1
    var faults = Faults()
    var chance: SeededEntropy
    var isDelivering = false
    var rest = Rest()
    var delivered = 0
  }

  /// Since when the devices do nothing but repeat full `Have`s.
  fileprivate struct Rest {
    var since: UInt64 = 0
    /// The end of the last time that was skipped.
    var wokeAt: UInt64 = 0
    /// The number of commits of all devices, as last counted.
    var commits = 0
  }

  private static let reconnectMicroseconds: UInt64 = 1_000_000
  /// Devices repeat a full `Have` within half of it.
  private static let restMicroseconds: UInt64 = 60_000_000
  /// After a skip, for what follows from the ticks that were due.
  private static let wakingMicroseconds: UInt64 = 10_000_000
  /// Messages that arrive later keep time from being skipped.
  private static let arrivalMicroseconds: UInt64 = 5_000_000

  private let state: Mutex<State>
  /// Microseconds since the start.
  private let now = Atomic<UInt64>(0)

  init(seed: UInt64) {
    state = Mutex(State(chance: SeededEntropy(seed: seed ^ 0x7E57)))
  }

  var count: Int { state.withLock { $0.hosts.count } }

  /// Messages delivered so far.
  var delivered: Int { state.withLock { $0.delivered } }

  func host(_ number: Int) -> Host {
    state.withLock { state in
      precondition(state.hosts.indices.contains(number), "there is no device \(number)")
      return state.hosts[number]
    }
  }

  func setFaults(_ faults: Faults) { state.withLock { $0.faults = faults } }

  // MARK: Devices

  func add(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: MemoryStorage
  ) throws(KithError) {
    let device = try make(account, keys, process, storage)
    let number = state.withLock { state in
      state.hosts.append(Host(device: device, keys: keys, storage: storage))
      return state.hosts.count - 1
    }
    device.attach(VirtualTransport(network: self, device: number))
  }

  /// Makes a device that is not linked yet.
  func make(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: MemoryStorage
  ) throws(KithError) -> VirtualDevice {
    try VirtualDevice(account: account, keys: keys, process: process, storage: storage) {
      [weak self] in
      let now = self?.now.load(ordering: .relaxed) ?? 0
      return Instant(
        wallMilliseconds: 1_800_000_000_000 + now / 1_000, monotonicMilliseconds: now / 1_000)
    }
  }

  func restart(
    _ number: Int, _ account: AccountID, _ process: () -> ProcessID
  ) throws(KithError) {
    let old = host(number)
    // A copy, so that the dead process reaches no device and no disk.
    let storage = MemoryStorage((try? old.storage.load()) ?? Snapshot())
    disconnectAll(of: number)
    let device = try make(account, old.keys, process(), storage)
    var new = Host(device: device, keys: old.keys, storage: storage)
    if let local = old.local {
      let copy = MemoryStorage((try? local.storage.load()) ?? Snapshot())
      new.local = LocalStores(account: local.account, keys: local.keys, storage: copy)
      if old.signedOut != nil {
        new.signedOut = try make(local.account, local.keys, process(), copy)
      }
    }
    change(number) { $0 = new }
    device.attach(VirtualTransport(network: self, device: number))
    connectAll()
  }

  func change(_ number: Int, _ body: (inout Host) -> Void) {
    state.withLock { state in
      precondition(state.hosts.indices.contains(number), "there is no device \(number)")
      body(&state.hosts[number])
    }
  }

  // MARK: Links

  func cut(_ one: Int, _ other: Int) {
    let pair = Self.pair(one, other)
    state.withLock { _ = $0.cuts.insert(pair) }
    disconnect(pair)
  }

  func mend(_ one: Int, _ other: Int) {
    let pair = Self.pair(one, other)
    state.withLock { _ = $0.cuts.remove(pair) }
    connect(pair)
  }

  func connectAll() {
    for one in 0..<count { for other in 0..<one { connect(Self.pair(one, other)) } }
  }

  /// The key of two devices in `cuts` and `sessions`.
  private static func pair(_ one: Int, _ other: Int) -> [Int] {
    [min(one, other), max(one, other)]
  }

  private func connect(_ pair: [Int]) {
    schedule(.connect(pair))
    deliver()
  }

  func disconnectAll(of device: Int) {
    for other in 0..<count where other != device { disconnect(Self.pair(device, other)) }
  }

  private func disconnect(_ pair: [Int]) {
    let session = state.withLock { state in
      let session = state.sessions.removeValue(forKey: pair)
      for side in session?.sides ?? [] { state.ends[side.session] = nil }
      return session
    }
    for side in session?.sides ?? [] { schedule(.ended(side.device, side.session)) }
    deliver()
  }

  /// Ends a connection early; the devices connect again later.
  private func lose(_ pair: [Int]) {
    let isPairing = state.withLock { $0.sessions[pair]?.isPairing == true }
    disconnect(pair)
    if !isPairing { schedule(.connect(pair), after: Self.reconnectMicroseconds) }
  }

  private func establish(_ pair: [Int]) {
    let session = state.withLock { state -> Session? in
      guard !state.cuts.contains(pair), state.sessions[pair] == nil,
        pair.allSatisfy({ state.hosts[$0].signedOut == nil })
      else { return nil }
      let session = state.makeSession(of: pair)
      state.add(session, of: pair)
      return session
    }
    guard let session else { return }
    for (end, side) in session.sides.enumerated() {
      let peer = host(session.sides[1 - end].device)
      host(side.device).device.input(
        .connected(
          side.session,
          SessionPeer(
            transportKey: peer.keys.transportPublicKey, hello: peer.device.hello(),
            isDialled: end == 0, address: "virtual:\(session.sides[1 - end].device + 1)")))
    }
  }

  /// Adds a device that joins through another; it stays once it has all that the inviter has.
  func join(
    _ account: AccountID, _ keys: DeviceKeys, _ process: ProcessID, _ storage: MemoryStorage,
    by inviter: Int, _ records: [Record]
  ) throws(KithError) {
    try add(account, keys, process, storage)
    let number = count - 1
    let pair = Self.pair(inviter, number)
    let (first, second) = state.withLock { state in
      let session = state.makeSession(of: pair, isPairing: true)
      if state.hosts[inviter].signedOut == nil { state.add(session, of: pair) }
      return (session.sides[0].session, session.sides[1].session)
    }
    let (host, joiner) = (host(inviter), host(number))
    // The joiner first: the inviter's messages are delivered at once.
    joiner.device.input(
      .join(
        second,
        Inviter(
          device: host.keys.id, clock: host.device.hello().clock,
          address: "virtual:\(inviter + 1)")))
    host.device.input(
      .admit(first, Joiner(records: records, address: "virtual:\(number + 1)")))
    deliver()
    if joiner.device.hasPulledAll { send(JoinDone().encodedMessage(), from: number, on: second) }
    guard host.device.membership.roster.isMember(joiner.keys.id) else {
      disconnect(pair)
      state.withLock { _ = $0.hosts.removeLast() }
      throw KithError(.network, "device \(inviter) cannot be reached to join through it")
    }
  }

  // MARK: Messages

  fileprivate func send(_ message: [UInt8], from device: Int, on session: SessionID) {
    let lost = state.withLock { state -> [Int]? in
      guard let (pair, end) = state.find(session, of: device),
        let other = state.sessions[pair]?.sides[1 - end]
      else { return nil }
      let faults = state.sessions[pair]?.isPairing == true ? Faults() : state.faults
      if state.happens(faults.loss) { return pair }
      let copies = state.happens(faults.duplication) ? 2 : 1
      let arrival = max(
        now.load(ordering: .relaxed) + faults.delay.microseconds,
        state.sessions[pair]?.lastArrival[end] ?? 0)
      state.sessions[pair]?.lastArrival[end] = arrival
      for _ in 0..<copies {
        state.add(.message(message, to: other.device, other.session), at: arrival)
      }
      return nil
    }
    if let lost { lose(lost) }
    deliver()
  }

  fileprivate func awaitDrain(_ session: SessionID, of device: Int) {
    schedule(.drained(device, session), after: state.withLock { $0.faults.delay.microseconds })
    deliver()
  }

  fileprivate func close(_ session: SessionID, of device: Int, _ reason: CloseReason) {
    guard let (pair, _) = state.withLock({ $0.find(session, of: device) }) else { return }
    guard reason == .aged else { return lose(pair) }
    // A day has passed: a new session takes its place, as transports make it.
    disconnect(pair)
    connect(pair)
  }

  fileprivate func closeAll(of device: Int) {
    for other in 0..<count where other != device { lose(Self.pair(device, other)) }
  }

  private func schedule(_ event: Event, after microseconds: UInt64 = 0) {
    let time = now.load(ordering: .relaxed) + microseconds
    state.withLock { $0.add(event, at: time) }
  }

  /// Handles all due events, in order.
  private func deliver() {
    let isOurs = state.withLock { state in
      defer { state.isDelivering = true }
      return !state.isDelivering
    }
    guard isOurs else { return }
    while true {
      let event = state.withLock { state -> Event? in
        guard let index = state.due(by: now.load(ordering: .relaxed)) else {
          state.isDelivering = false
          return nil
        }
        return state.events.remove(at: index).event
      }
      guard let event else { return }
      if case .message(let bytes, let device, let session) = event {
        // The session may have ended meanwhile.
        guard state.withLock({ $0.find(session, of: device) }) != nil else { continue }
        let isFullHave = host(device).device.receive(bytes, on: session)
        state.withLock { state in
          state.delivered += 1
          if !isFullHave { state.rest.since = now.load(ordering: .relaxed) }
        }
        continue
      }
      state.withLock { $0.rest.since = now.load(ordering: .relaxed) }
      switch event {
      case .message: break
      case .drained(let device, let session): host(device).device.input(.drained(session))
      case .ended(let device, let session): host(device).device.input(.disconnected(session))
      case .connect(let pair): establish(pair)
      }
    }
  }

  // MARK: Time

  func advance(by duration: Duration) {
    let end = now.load(ordering: .relaxed) + duration.microseconds
    while true {
      skipRest(until: end)
      let ticks = (0..<count).compactMap { number in
        host(number).device.wakesAtMilliseconds.map { $0 * 1_000 }
      }
      let times = state.withLock { $0.events.map(\.time) } + ticks
      let current = now.load(ordering: .relaxed)
      let next = max(times.min() ?? end, current)
      guard next < end else { break }
      now.store(max(next, current + 1_000), ordering: .relaxed)
      tick()
    }
    now.store(max(end, now.load(ordering: .relaxed)), ordering: .relaxed)
    tick()
  }

  /// If all devices have rested for a minute, lets as much time pass at once as they have rested, as if
  /// all computers slept. Then all that became due is done.
  ///
  /// So a day takes some twenty steps, and a timer of ours that no message announces is late by no
  /// more than it had run. No message may be under way: it would tell a time long past.
  private func skipRest(until end: UInt64) {
    guard isResting() else { return }
    while let arrival = state.withLock({ $0.events.map(\.time).min() }) {
      guard arrival <= now.load(ordering: .relaxed) + Self.arrivalMicroseconds, arrival < end else {
        return
      }
      now.store(max(arrival, now.load(ordering: .relaxed)), ordering: .relaxed)
      deliver()
    }
    guard isResting() else { return }
    let current = now.load(ordering: .relaxed)
    let wake = state.withLock { state in
      state.rest.wokeAt = min(end, current + (current - state.rest.since))
      return state.rest.wokeAt
    }
    now.store(wake, ordering: .relaxed)
    tick()
  }

  private func isResting() -> Bool {
    let commits = (0..<count).reduce(0) { $0 + host($1).storage.commits }
    let current = now.load(ordering: .relaxed)
    return state.withLock { state in
      if commits != state.rest.commits {
        state.rest.commits = commits
        state.rest.since = current
      }
      return current >= state.rest.since + Self.restMicroseconds
        && current >= state.rest.wokeAt + Self.wakingMicroseconds
    }
  }

  private func tick() {
    deliver()
    for number in 0..<count { host(number).device.tick() }
    deliver()
  }
}

extension VirtualNetwork.State {
  fileprivate mutating func makeSession(
    of pair: [Int], isPairing: Bool = false
  ) -> VirtualNetwork.Session {
    defer { nextSession += 2 }
    return VirtualNetwork.Session(
      sides: [
        (device: pair[0], session: SessionID(rawValue: nextSession)),
        (device: pair[1], session: SessionID(rawValue: nextSession + 1)),
      ], isPairing: isPairing)
  }

  fileprivate mutating func add(_ session: VirtualNetwork.Session, of pair: [Int]) {
    sessions[pair] = session
    for (end, side) in session.sides.enumerated() { ends[side.session] = (pair, end) }
  }

  fileprivate mutating func add(_ event: VirtualNetwork.Event, at time: UInt64) {
    events.append((time, nextOrder, event))
    nextOrder += 1
  }

  fileprivate func due(by now: UInt64) -> Int? {
    events.indices.filter { events[$0].time <= now }
      .min { (events[$0].time, events[$0].order) < (events[$1].time, events[$1].order) }
  }

  fileprivate func find(_ session: SessionID, of device: Int) -> (pair: [Int], end: Int)? {
    guard let found = ends[session], found.pair[found.end] == device else { return nil }
    return found
  }

  fileprivate mutating func happens(_ chance: Double) -> Bool {
    chance > 0 && Double.random(in: 0..<1, using: &self.chance) < chance
  }
}

extension Duration {
  /// 0 if negative.
  fileprivate var microseconds: UInt64 {
    let (seconds, attoseconds) = components
    return UInt64(max(0, seconds * 1_000_000 + attoseconds / 1_000_000_000_000))
  }
}

private final class VirtualTransport: SessionTransport {
  private weak let network: VirtualNetwork?
  private let device: Int

  init(network: VirtualNetwork, device: Int) {
    self.network = network
    self.device = device
  }

  func send(_ messages: [[UInt8]], to session: SessionID) {
    for message in messages { network?.send(message, from: device, on: session) }
  }

  func awaitDrain(_ session: SessionID) { network?.awaitDrain(session, of: device) }
  func close(_ session: SessionID, _ reason: CloseReason) {
    network?.close(session, of: device, reason)
  }
  func closeAll() { network?.closeAll(of: device) }
}
