package import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// The node's side of a ``Discovery``. Called on an event loop; must not block.
package protocol DiscoveryDelegate: AnyObject, Sendable {
  /// Nil: send no beacons.
  func currentEpoch() -> EpochKeys?
  /// The newest first.
  func epochKeys() -> [EpochKeys]
  /// Nil if the device is not a member.
  func member(_ device: DeviceID) -> Certificate?
}

/// Lets the devices of an account find each other on their links (`Docs/Decisions/discovery.md`).
///
/// The only answer to a beacon is a dialled connection. All work is within ``run()``.
package final class Discovery: Sendable {
  private struct State {
    var judge: BeaconJudge
    var neighbours = Neighbours()
    var schedule = BeaconSchedule()
    var timer: Scheduled<Void>?
    var isRunning = false
    var counter: UInt64 = 0
    var sent: UInt64 = 0
    var ignored: UInt64 = 0
  }

  private let account: AccountID
  private let keys: DeviceKeys
  private let port: UInt16
  private let boot: UInt64
  private let transport: Transport
  private let delegate: any DiscoveryDelegate
  private let link: LinkMulticast
  private let eventLoop = Bootstraps.group.next()
  private let state: Mutex<State>

  /// Makes a discovery that is not running yet.
  ///
  /// If `port` is 0, the node does not listen, and sends no beacons. `link` carries only beacons.
  /// `delegate` is held strongly.
  package init(
    transport: Transport, account: AccountID, port: UInt16, link: LinkMulticast,
    delegate: any DiscoveryDelegate
  ) {
    self.account = account
    self.port = port
    self.transport = transport
    self.delegate = delegate
    self.link = link
    keys = transport.keys
    boot = transport.entropy.number()
    state = Mutex(State(judge: BeaconJudge(account: account, device: transport.keys.id)))
  }

  /// Runs until the task is cancelled.
  package func run() async {
    state.withLock { $0.isRunning = true }
    link.start(
      onDatagram: { self.received($0) },
      onLinksChanged: { self.changed() })
    let (ended, continuation) = AsyncStream<Never>.makeStream()
    for await _ in ended {}
    continuation.finish()
    let timer = state.withLock { state in
      state.isRunning = false
      return state.timer
    }
    timer?.cancel()
    await link.stop()
  }

  package var status: NodeStatus.Discovery {
    let links = link.links
    return state.withLock { state in
      NodeStatus.Discovery(
        links: links, neighbours: state.neighbours.all(now: Dialler.now), sent: state.sent,
        ignored: state.ignored)
    }
  }

  // MARK: Sending

  /// Called when links or addresses have changed.
  private func changed() {
    transport.probeSessions()
    transport.redialOurselves()
    let random = transport.entropy.fraction()
    state.withLock { state in
      let wait = state.schedule.changed(random: random)
      schedule(wait, &state)
    }
  }

  private func schedule(_ milliseconds: UInt64, _ state: inout State) {
    state.timer?.cancel()
    guard state.isRunning else { return }
    state.timer = eventLoop.scheduleTask(in: .milliseconds(Int64(milliseconds))) { self.beat() }
  }

  private func beat() {
    let random = transport.entropy.fraction()
    let nonce = transport.entropy.use { $0.draw(BoxNonce.self) }
    let counter = state.withLock { state in
      let wait = state.schedule.next(random: random)
      schedule(wait, &state)
      state.counter += 1
      return state.counter
    }
    forgetTheSilent()
    guard port != 0, let epoch = delegate.currentEpoch() else { return }
    let beacon = Beacon(device: keys.id, port: port, boot: boot, counter: counter)
    link.send(beacon.sealed(account: account, key: keys.signing, epoch: epoch, nonce: nonce))
    state.withLock { $0.sent += 1 }
  }

  // MARK: Hearing

  private func received(_ datagram: LinkMulticast.Datagram) {
    let epochs = delegate.epochKeys()
    let now = Dialler.now
    let verdict = state.withLock { state in
      state.judge.judge(datagram.bytes, from: datagram.source, epochs: epochs, at: now) {
        delegate.member($0) != nil
      }
    }
    switch verdict {
    case .found(let beacon, let isNew):
      guard let address = try? PeerAddress(host: datagram.source, port: beacon.port),
        let certificate = delegate.member(beacon.device)
      else { return }
      let addresses = state.withLock {
        $0.neighbours.heard(beacon.device, at: address, now: now)
      }
      transport.setFoundAddresses(
        addresses, of: beacon.device, transportKey: certificate.transportKey, isNew: isNew)
      if isNew {
        transport.probeSessions(with: certificate.transportKey, butAt: address.host)
      }
    case .ourselves: break
    case .strange, .notAMember, .stale, .tooMany:
      state.withLock { $0.ignored += 1 }
    }
  }

  private func forgetTheSilent() {
    let changed = state.withLock { $0.neighbours.expire(now: Dialler.now) }
    for (device, addresses) in changed {
      transport.setFoundAddresses(addresses, of: device, transportKey: nil, isNew: false)
    }
  }
}

/// Beacons are frequent at first and after a change, then rare. Times are in milliseconds.
struct BeaconSchedule: Sendable {
  /// Give or take an eighth.
  static let longest: UInt64 = 60_000
  static let first: UInt64 = 1_000
  /// The longest wait after a change: others may follow.
  static let settling: UInt64 = 200

  private var wait = first

  /// Returns the wait before the first beacon; `random` is from 0 up to 1.
  mutating func changed(random: Double) -> UInt64 {
    wait = Self.first
    return UInt64(Double(Self.settling) * random)
  }

  mutating func next(random: Double) -> UInt64 {
    defer { wait = min(2 * wait, Self.longest) }
    return UInt64(Double(wait) * (0.875 + 0.25 * random))
  }
}

/// The devices heard on the link. Times are in milliseconds.
struct Neighbours: Sendable {
  private struct Source {
    var address: PeerAddress
    var heardAt: UInt64
  }

  private var sources: [DeviceID: [Source]] = [:]

  /// Returns all addresses. A known one keeps its position, so that links do not alternate. A new
  /// one comes first, and may replace the one heard longest ago.
  mutating func heard(_ device: DeviceID, at address: PeerAddress, now: UInt64) -> [PeerAddress] {
    var known = sources[device] ?? []
    if let index = known.firstIndex(where: { $0.address == address }) {
      known[index].heardAt = now
    } else {
      if known.count >= NetworkLimits.foundAddresses {
        let oldest = known.indices.min { known[$0].heardAt < known[$1].heardAt }
        if let oldest { known.remove(at: oldest) }
      }
      known.insert(Source(address: address, heardAt: now), at: 0)
    }
    sources[device] = known
    return known.map(\.address)
  }

  /// Returns the changed devices with the remaining addresses.
  mutating func expire(now: UInt64) -> [DeviceID: [PeerAddress]] {
    var changed: [DeviceID: [PeerAddress]] = [:]
    for (device, known) in sources {
      let kept = known.filter { $0.heardAt + NetworkLimits.foundMilliseconds > now }
      guard kept.count < known.count else { continue }
      changed[device] = kept.map(\.address)
      sources[device] = kept.isEmpty ? nil : kept
    }
    return changed
  }

  /// Sorted by id, with the time since each was heard.
  func all(now: UInt64) -> [NodeStatus.Discovery.Neighbour] {
    sources.sorted { $0.key < $1.key }.map { device, sources in
      let heard = sources.map(\.heardAt).max() ?? now
      return NodeStatus.Discovery.Neighbour(
        device: device, addresses: sources.map(\.address.description),
        milliseconds: now - min(heard, now))
    }
  }
}
