internal import KithCrypto

/// Decides with which devices a node has sessions (`Docs/Decisions/overlay.md`): with all if they
/// are few; otherwise with some that it draws and dials, and those that drew it.
///
/// Times are monotonic milliseconds; the seed decides every draw.
package struct OverlayPlan: Sendable {
  /// Times are in milliseconds.
  package struct Bounds: Sendable {
    /// Up to so many devices, this one included, each dials every other.
    package var mesh = 8
    /// Devices that each device draws and dials.
    package var dials = 4
    /// Sessions above which an accepted one is closed now and then.
    package var sessions = 12
    /// Left-behind devices that are dialled at one time, besides the drawn ones.
    package var rescues = 2
    /// The time until another device replaces a drawn one.
    package var redraw: UInt64 = 600_000
    /// The time before an accepted session may be closed as surplus, and between two such closings.
    package var courtesy: UInt64 = 30_000
    /// The time for which an unreachable device is not drawn.
    package var avoidance: UInt64 = 120_000
    /// The first and the longest wait before another draw, if many were unreachable.
    package var patience: ClosedRange<UInt64> = 250...30_000

    package init() {}
  }

  package struct Peer: Sendable {
    package enum Origin: Sendable {
      /// This node drew and dialled the device.
      case drawn
      /// This node always dials a configured address.
      case configured
      /// The device dialled this node.
      case accepted
    }

    /// Nil if unknown.
    package var device: DeviceID?
    package var origin: Origin
    package var openedAt: UInt64

    package init(device: DeviceID?, origin: Origin, openedAt: UInt64) {
      self.device = device
      self.origin = origin
      self.openedAt = openedAt
    }
  }

  package struct Decision: Equatable, Sendable {
    /// The devices to dial, unless they have a session.
    package var dials: Set<DeviceID> = []
    package var closes: [SessionID] = []
  }

  package let bounds: Bounds
  private var random: SeededEntropy
  /// The devices that should have a session, in drawing order.
  private var drawn: [DeviceID] = []
  /// Left-behind devices that are dialled too.
  private var rescues: [DeviceID] = []
  private var leftBehind: [DeviceID] = []
  private var avoided: [DeviceID: UInt64] = [:]
  private var failuresInRow = 0
  private var drawAt: UInt64 = 0
  private var redrawAt: UInt64?
  private var closeAt: UInt64 = 0
  /// The time of the next decision if no event comes before.
  package private(set) var nextDue: UInt64?

  package init(bounds: Bounds = Bounds(), seed: UInt64) {
    self.bounds = bounds
    random = SeededEntropy(seed: seed)
  }

  /// Sets the devices that may lack old data. Some are dialled: the overlay may be split.
  package mutating func setLeftBehind(_ devices: [DeviceID]) { leftBehind = devices }

  /// Handles a device that was not reached, or whose session broke.
  package mutating func lost(_ device: DeviceID, at now: UInt64) {
    let wasWanted = drawn.contains(device) || rescues.contains(device)
    drawn.removeAll { $0 == device }
    rescues.removeAll { $0 == device }
    guard wasWanted else { return }
    avoided[device] = now + bounds.avoidance
    failuresInRow += 1
    guard failuresInRow > bounds.dials else { return }
    let doubled = bounds.patience.lowerBound << UInt64(min(failuresInRow - bounds.dials, 20))
    drawAt = now + min(doubled, bounds.patience.upperBound)
  }

  /// Decides which devices to dial and which sessions to close.
  ///
  /// `candidates` are the other devices that can be dialled, in order; `peers` are the open
  /// sessions.
  ///
  /// - Complexity: O(*n*) in the candidates.
  package mutating func decide(
    candidates: [DeviceID], peers: [SessionID: Peer], at now: UInt64
  ) -> Decision {
    nextDue = nil
    guard candidates.count >= bounds.mesh else {
      (drawn, rescues, redrawAt) = ([], [], nil)
      return Decision(dials: Set(candidates))
    }
    let connected = Set(peers.values.compactMap(\.device))
    avoided = avoided.filter { $0.value > now }
    if !connected.isDisjoint(with: drawn) { failuresInRow = 0 }
    retain(only: Set(candidates))
    redraw(candidates, connected, at: now)
    rescue(candidates, connected)
    draw(candidates, connected, at: now)
    var decision = Decision(dials: Set(drawn + rescues))
    decision.closes = retired(peers, connected) + surplus(peers, at: now)
    return decision
  }

  private mutating func plan(at time: UInt64) { nextDue = min(nextDue ?? .max, time) }

  private mutating func retain(only candidates: Set<DeviceID>) {
    drawn.removeAll { !candidates.contains($0) }
    rescues.removeAll { !candidates.contains($0) }
  }

  /// Replaces a drawn device at times, so that an unnoticed split ends.
  private mutating func redraw(
    _ candidates: [DeviceID], _ connected: Set<DeviceID>, at now: UInt64
  ) {
    let interval = bounds.redraw * 3 / 4 + random.next() % max(1, bounds.redraw / 2)
    if let due = redrawAt, due <= now {
      redrawAt = now + interval
      if drawn.count >= bounds.dials, candidates.contains(where: { !connected.contains($0) }) {
        drawn.remove(at: Int(random.next() % UInt64(drawn.count)))
      }
    }
    let due = redrawAt ?? now + interval
    redrawAt = due
    plan(at: due)
  }

  /// Draws a connected left-behind device: it may be the only connection of others.
  private mutating func rescue(_ candidates: [DeviceID], _ connected: Set<DeviceID>) {
    for device in rescues where connected.contains(device) {
      rescues.removeAll { $0 == device }
      if drawn.contains(device) { continue }
      if drawn.count >= bounds.dials {
        drawn.remove(at: Int(random.next() % UInt64(drawn.count)))
      }
      drawn.append(device)
    }
    let all = Set(candidates)
    while rescues.count < bounds.rescues {
      let rest = leftBehind.filter {
        all.contains($0) && avoided[$0] == nil && !connected.contains($0) && !drawn.contains($0)
          && !rescues.contains($0)
      }
      guard let device = rest.randomElement(using: &random) else { return }
      rescues.append(device)
    }
  }

  private mutating func draw(
    _ candidates: [DeviceID], _ connected: Set<DeviceID>, at now: UInt64
  ) {
    let wanted = min(bounds.dials, candidates.count)
    guard drawn.count < wanted else { return }
    guard now >= drawAt else { return plan(at: drawAt) }
    let free = candidates.filter { !drawn.contains($0) && !rescues.contains($0) }
    var best = free.filter { !connected.contains($0) && avoided[$0] == nil }
    var rest = free.filter { connected.contains($0) }
    while drawn.count < wanted {
      if best.isEmpty { (best, rest) = (rest, []) }
      guard !best.isEmpty else { break }
      drawn.append(best.remove(at: Int(random.next() % UInt64(best.count))))
    }
    // All other devices are avoided for now.
    if drawn.count < wanted, let earliest = avoided.values.min() { plan(at: earliest) }
  }

  /// Returns sessions with formerly drawn devices, once all that are drawn now have sessions.
  private func retired(
    _ peers: [SessionID: Peer], _ connected: Set<DeviceID>
  ) -> [SessionID] {
    guard drawn.count >= bounds.dials, drawn.allSatisfy(connected.contains) else { return [] }
    return peers.filter { _, peer in
      guard peer.origin == .drawn, let device = peer.device else { return false }
      return !drawn.contains(device) && !rescues.contains(device)
    }.keys.sorted()
  }

  /// Returns one of too many accepted sessions, so that newcomers can still be accepted.
  private mutating func surplus(_ peers: [SessionID: Peer], at now: UInt64) -> [SessionID] {
    guard peers.count > bounds.sessions else { return [] }
    let accepted = peers.filter { _, peer in
      peer.origin == .accepted && !drawn.contains { $0 == peer.device }
    }.sorted { $0.key < $1.key }
    let old = accepted.filter { $0.value.openedAt + bounds.courtesy <= now }
    guard now >= closeAt, let one = old.randomElement(using: &random) else {
      if let first = accepted.map(\.value.openedAt).min() {
        plan(at: max(closeAt, first + bounds.courtesy))
      }
      return []
    }
    closeAt = now + bounds.courtesy
    plan(at: closeAt)
    return [one.key]
  }
}
