internal import KithCore
internal import KithCrypto

/// Decides which targets to dial, and when. Times are in milliseconds.
struct DialSchedule {
  private enum Phase: Equatable {
    case waiting(until: UInt64)
    case dialling
    case connected(SessionID)
    case ourselves
  }

  private struct Entry {
    /// For a device, ``found`` and then ``remembered``.
    var addresses: [PeerAddress] = []
    /// Heard on the link.
    var found: [PeerAddress] = []
    /// From this or another device's sessions.
    var remembered: [PeerAddress] = []
    /// Met there, or known to be the device's.
    var key: TransportPublicKey?
    var phase = Phase.waiting(until: 0)
    var failures = 0
    var quickRedials = 0
    var pskIndex = 0
    var nextAddress = 0
    var triedAt: UInt64?
    /// When the last call began, since 1970.
    var triedMilliseconds: UInt64 = 0
    /// The last finished calls, of current addresses.
    var attempts: [PeerAddress: DialAttempt] = [:]
    var ended = 0

    mutating func end(at address: PeerAddress, _ failure: DialFailure?) {
      ended += 1
      guard addresses.contains(address) else { return }
      attempts[address] = DialAttempt(milliseconds: triedMilliseconds, failure: failure)
    }

    var address: PeerAddress { addresses[nextAddress % addresses.count] }

    var ranked: [PeerAddress] {
      Array(
        (found + remembered.filter { !found.contains($0) }).prefix(NetworkLimits.addressesPerDevice)
      )
    }
  }

  private struct Session {
    var key: TransportPublicKey
    var address: String
    var target: DialTarget?
    var openedAt: UInt64
  }

  private let leastWait: UInt64
  private let mostWait: UInt64
  private var entries: [DialTarget: Entry] = [:]
  private var sessions: [SessionID: Session] = [:]
  private var overlay: OverlayPlan
  private var dialled: Set<DeviceID> = []
  private var surplus: [SessionID] = []

  init(
    configuration: TransportConfiguration = TransportConfiguration(),
    overlay: OverlayPlan = OverlayPlan(seed: 0)
  ) {
    leastWait = configuration.leastRedialMilliseconds
    mostWait = configuration.mostRedialMilliseconds
    self.overlay = overlay
  }

  // MARK: Targets

  /// A known address keeps its state. Returns false if ``NetworkLimits/staticTargets`` others are
  /// known.
  @discardableResult
  mutating func addStatic(_ address: PeerAddress) -> Bool {
    guard entries[.address(address)] == nil else { return true }
    let count = entries.keys.count { if case .address = $0 { true } else { false } }
    guard count < NetworkLimits.staticTargets else { return false }
    entries[.address(address)] = Entry(addresses: [address])
    return true
  }

  /// Stops calling an address. Returns false if it is none of a person's.
  mutating func removeStatic(_ address: PeerAddress) -> Bool {
    entries.removeValue(forKey: .address(address)) != nil
  }

  /// Calls an address of a person at once, unless it is connected or being called.
  mutating func hurry(_ address: PeerAddress) {
    switch entries[.address(address)]?.phase {
    case .waiting, .ourselves: entries[.address(address)]?.phase = .waiting(until: 0)
    case .dialling, .connected, nil: break
    }
  }

  /// All addresses that are called if need be, in order.
  ///
  /// - Complexity: O(*n* log *n*) in the targets.
  var addresses: [DialledAddress] {
    let connected = Set(sessions.values.map(\.address))
    return entries.sorted { $0.key < $1.key }.flatMap { target, entry in
      entry.addresses.map { address in
        var dialled = DialledAddress(address: address)
        if case .device(let device) = target {
          dialled.device = device
          dialled.isOnlyHeard = !entry.remembered.contains(address)
        }
        dialled.key = entry.key
        dialled.attempt = entry.attempts[address]
        dialled.ended = entry.ended
        dialled.isConnected = connected.contains(address.description)
        if case .address = target, case .connected = entry.phase { dialled.isConnected = true }
        return dialled
      }
    }
  }

  /// Tries new addresses at once. An empty list forgets the remembered ones.
  mutating func setRemembered(
    _ addresses: [PeerAddress], of device: DeviceID, key: TransportPublicKey?
  ) {
    setAddresses(of: device, key: key) { entry in
      entry.remembered = Array(addresses.prefix(NetworkLimits.addressesPerDevice))
    }
  }

  /// Sets the addresses at which a device is heard on the link, which are tried first; empty: not
  /// heard.
  ///
  /// A device that is heard waits at most `mostWait` after its last attempt, and if `isNew` (a new
  /// boot or address) at most ``NetworkLimits/foundRedialMilliseconds``.
  mutating func setFound(
    _ addresses: [PeerAddress], of device: DeviceID, key: TransportPublicKey?, isNew: Bool,
    at now: UInt64
  ) {
    let target = DialTarget.device(device)
    let before = entries[target]
    setAddresses(of: device, key: key) { entry in
      entry.found = Array(addresses.prefix(NetworkLimits.addressesPerDevice))
    }
    guard var entry = entries[target], let before, !addresses.isEmpty,
      case .waiting(let until) = before.phase
    else { return }
    let wait = isNew ? NetworkLimits.foundRedialMilliseconds : mostWait
    entry.failures = before.failures
    entry.phase = .waiting(until: min(until, max(now, before.triedAt.map { $0 + wait } ?? now)))
    entries[target] = entry
  }

  private mutating func setAddresses(
    of device: DeviceID, key: TransportPublicKey?, _ change: (inout Entry) -> Void
  ) {
    let target = DialTarget.device(device)
    var entry = entries[target] ?? Entry()
    entry.key = key ?? entry.key
    change(&entry)
    let others = entries.keys.count { if case .device = $0 { $0 != target } else { false } }
    let addresses = entry.ranked
    guard !addresses.isEmpty, others < NetworkLimits.rememberedDevices else {
      entries[target] = nil
      return
    }
    if entry.addresses != addresses {
      entry.addresses = addresses
      entry.attempts = entry.attempts.filter { addresses.contains($0.key) }
      entry.nextAddress = 0
      entry.failures = 0
      switch entry.phase {
      case .waiting, .ourselves: entry.phase = .waiting(until: 0)
      case .dialling, .connected: break
      }
    }
    entries[target] = entry
  }

  // MARK: Attempts

  /// `milliseconds`: the time since 1970.
  ///
  /// - Complexity: O(*n* log *n*) in the targets.
  mutating func takeDue(at now: UInt64, milliseconds: UInt64 = 0) -> [Dial] {
    decide(at: now)
    var dials: [Dial] = []
    var underWay = Set(entries.values.filter { $0.phase == .dialling }.map(\.address))
    for target in entries.keys.sorted() {
      guard underWay.count < NetworkLimits.dials else { break }
      guard var entry = entries[target], case .waiting(let until) = entry.phase, until <= now,
        isWanted(target), let next = nextIndex(of: entry), !underWay.contains(entry.addresses[next])
      else { continue }
      entry.nextAddress = next
      entry.phase = .dialling
      entry.triedAt = now
      entry.triedMilliseconds = milliseconds
      underWay.insert(entry.address)
      dials.append(Dial(target: target, address: entry.address, pskIndex: entry.pskIndex))
      entries[target] = entry
    }
    return dials
  }

  /// Nil: no attempt is due before another event.
  func nextDue() -> UInt64? {
    let underWay = Set(entries.values.filter { $0.phase == .dialling }.map(\.address))
    guard underWay.count < NetworkLimits.dials else { return nil }
    let next = entries.compactMap { target, entry -> UInt64? in
      guard case .waiting(let until) = entry.phase, isWanted(target),
        let next = nextIndex(of: entry), !underWay.contains(entry.addresses[next])
      else { return nil }
      return until
    }.min()
    return [next, overlay.nextDue].compactMap { $0 }.min()
  }

  mutating func failed(
    _ dial: Dial, _ failure: DialFailure, at now: UInt64, random: Double
  ) {
    guard var entry = entries[dial.target], entry.phase == .dialling else { return }
    entry.end(at: dial.address, failure)
    switch failure {
    case .ourselves where entry.addresses == [dial.address]:
      entry.phase = .ourselves
    case .ourselves, .unreachable, .refused, .anotherDevice, .noRoom, .noKey:
      if failure == .refused { entry.pskIndex = (dial.pskIndex + 1) % NetworkLimits.presharedKeys }
      entry.nextAddress += 1
      entry.failures += 1
      entry.phase = .waiting(until: now + delay(entry.failures, dial.target, random))
      if entry.failures >= entry.addresses.count { lost(dial.target, at: now) }
    }
    entries[dial.target] = entry
  }

  /// Calls again, at once, the targets whose only address was this node's own.
  mutating func redialOurselves() {
    for (target, entry) in entries where entry.phase == .ourselves {
      entries[target]?.phase = .waiting(until: 0)
    }
  }

  // MARK: Sessions

  /// Returns the sessions with a device, by its static key, at other hosts.
  func sessions(with key: TransportPublicKey, butAt host: String) -> [SessionID] {
    sessions.filter { $0.value.key == key && (try? PeerAddress($0.value.address))?.host != host }
      .keys.sorted()
  }

  /// If another device answers than the dialled one, whose key is known, the attempt has failed.
  mutating func opened(
    _ id: SessionID, key: TransportPublicKey, address: String, by dial: Dial?, at now: UInt64,
    random: Double
  ) {
    sessions[id] = Session(key: key, address: address, target: dial?.target, openedAt: now)
    guard let dial, var entry = entries[dial.target] else { return }
    if case .device = dial.target, let known = entry.key, known != key {
      sessions[id]?.target = nil
      return failed(dial, .anotherDevice, at: now, random: random)
    }
    entry.end(at: dial.address, nil)
    entry.key = key
    entry.pskIndex = 0
    entry.phase = .connected(id)
    entries[dial.target] = entry
  }

  mutating func closed(_ id: SessionID, reason: CloseReason?, at now: UInt64, random: Double) {
    guard let session = sessions.removeValue(forKey: id) else { return }
    if let target = session.target, var entry = entries[target],
      entry.phase == .connected(id)
    {
      let lasted = now >= session.openedAt + NetworkLimits.stableSessionMilliseconds
      switch reason {
      case .membershipOnly? where entry.quickRedials < NetworkLimits.quickRedials:
        entry.quickRedials += 1
        entry.phase = .waiting(until: now + delay(1, target, random))
      default:
        if !sessions.values.contains(where: { $0.key == session.key }) { lost(target, at: now) }
        if lasted { (entry.failures, entry.quickRedials) = (0, 0) }
        entry.failures += 1
        entry.phase = .waiting(until: now + delay(entry.failures, target, random))
      }
      entries[target] = entry
    }
    // Targets that waited for this session are due soon, but not all at once.
    for target in entries.keys.sorted() {
      guard var entry = entries[target], case .waiting(let until) = entry.phase, until <= now,
        entry.key == session.key || entry.address.description == session.address,
        nextIndex(of: entry) != nil
      else { continue }
      entry.phase = .waiting(until: now + delay(1, target, random))
      entries[target] = entry
    }
  }

  /// Returns the next address's index; nil if the device has a session, or must wait.
  ///
  /// If the target's key is known, addresses with another device's session are skipped. Otherwise the
  /// attempt waits for that session's end.
  private func nextIndex(of entry: Entry) -> Int? {
    guard !sessions.values.contains(where: { $0.key == entry.key }) else { return nil }
    let count = entry.addresses.count
    let indices = (0..<(entry.key == nil ? 1 : count)).map { (entry.nextAddress + $0) % count }
    return indices.first { next in
      !sessions.values.contains { $0.address == entry.addresses[next].description }
    }
  }

  /// The wait doubles with each failure, and is then multiplied by a random factor from 0.4 to 1.
  private func delay(_ failures: Int, _ target: DialTarget, _ random: Double) -> UInt64 {
    let most =
      if case .address = target { mostWait } else { NetworkLimits.mostRememberedRedialMilliseconds }
    let doubled = leastWait << UInt64(min(max(failures - 1, 0), 20))
    return UInt64(Double(min(doubled, most)) * (0.4 + 0.6 * random))
  }
}

// MARK: The overlay

extension DialSchedule {
  mutating func setLeftBehind(_ devices: [DeviceID]) { overlay.setLeftBehind(devices) }

  mutating func takeSurplus() -> [SessionID] {
    defer { surplus = [] }
    return surplus
  }

  private func isWanted(_ target: DialTarget) -> Bool {
    switch target {
    case .address: true
    case .device(let device): dialled.contains(device)
    }
  }

  private mutating func lost(_ target: DialTarget, at now: UInt64) {
    if case .device(let device) = target { overlay.lost(device, at: now) }
  }

  private mutating func decide(at now: UInt64) {
    var candidates: [DeviceID] = []
    var devices: [TransportPublicKey: DeviceID] = [:]
    for case (.device(let device), let entry) in entries {
      candidates.append(device)
      if let key = entry.key { devices[key] = device }
    }
    let peers = sessions.mapValues { session in
      let origin: OverlayPlan.Peer.Origin =
        switch session.target {
        case .device: .drawn
        case .address: .configured
        case nil: .accepted
        }
      return OverlayPlan.Peer(
        device: devices[session.key], origin: origin, openedAt: session.openedAt)
    }
    let decision = overlay.decide(candidates: candidates.sorted(), peers: peers, at: now)
    dialled = decision.dials
    surplus += decision.closes
  }
}
