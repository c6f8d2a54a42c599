import KithCrypto
import Testing

@testable import KithCore

/// The plan of connections as a value: many plans in one thread, whose dials succeed at once.
@Suite struct OverlayPlanTests {
  /// Devices that decide in turn, and the sessions that come of it.
  private struct Net {
    var ids: [DeviceID]
    var plans: [OverlayPlan]
    var peers: [[SessionID: (peer: Int, isDialled: Bool, openedAt: UInt64)]]
    var isUp: [Bool]
    /// Devices of different sides do not reach each other.
    var side: [Int]
    var now: UInt64 = 0
    private var next: UInt64 = 1

    init(_ count: Int, seed: UInt64) {
      var random = SeededEntropy(seed: seed)
      ids = (0..<count).map { _ in SigningKey(seed: SigningSeed(random: &random)).publicKey }
        .sorted()
      plans = (0..<count).map { _ in OverlayPlan(seed: random.next()) }
      peers = Array(repeating: [:], count: count)
      isUp = Array(repeating: true, count: count)
      side = Array(repeating: 0, count: count)
    }

    mutating func end(_ session: SessionID, of index: Int) {
      guard let end = peers[index].removeValue(forKey: session) else { return }
      let other = peers[end.peer].removeValue(forKey: session)
      if other?.isDialled == true { plans[end.peer].lost(ids[index], at: now) }
    }

    mutating func step(milliseconds: UInt64 = 1_000) {
      now += milliseconds
      for index in ids.indices where isUp[index] {
        let seen = peers[index].mapValues {
          OverlayPlan.Peer(
            device: ids[$0.peer], origin: $0.isDialled ? .drawn : .accepted, openedAt: $0.openedAt)
        }
        let decision = plans[index].decide(
          candidates: ids.filter { $0 != ids[index] }, peers: seen, at: now)
        for session in decision.closes { end(session, of: index) }
        for device in decision.dials.sorted() {
          guard let other = ids.firstIndex(of: device),
            !peers[index].values.contains(where: { $0.peer == other })
          else { continue }
          guard isUp[other], side[other] == side[index] else {
            plans[index].lost(device, at: now)
            continue
          }
          peers[index][SessionID(rawValue: next)] = (other, true, now)
          peers[other][SessionID(rawValue: next)] = (index, false, now)
          next += 1
        }
      }
    }

    mutating func run(_ steps: Int, milliseconds: UInt64 = 1_000) {
      for _ in 0..<steps { step(milliseconds: milliseconds) }
    }

    mutating func stop(_ index: Int) {
      isUp[index] = false
      for session in peers[index].keys.sorted() { end(session, of: index) }
    }

    /// Devices that are reached from one.
    func reached(from index: Int) -> Set<Int> {
      var seen: Set<Int> = [index]
      var rest = [index]
      while let one = rest.popLast() {
        for end in peers[one].values where seen.insert(end.peer).inserted { rest.append(end.peer) }
      }
      return seen
    }

    var isConnected: Bool {
      guard let first = isUp.firstIndex(of: true) else { return true }
      return reached(from: first).count == isUp.count { $0 }
    }
  }

  @Test(arguments: [2, 5, 8]) func `few devices are all connected to all`(count: Int) {
    var net = Net(count, seed: UInt64(count))
    net.run(3)
    for peers in net.peers { #expect(Set(peers.values.map(\.peer)).count == count - 1) }
  }

  @Test func `many devices are connected over few sessions, whatever the seed`() {
    for seed: UInt64 in 1...24 {
      let count = [9, 16, 32, 64][Int(seed % 4)]
      var net = Net(count, seed: seed)
      net.run(90)
      #expect(net.isConnected, "seed \(seed)")
      for peers in net.peers {
        #expect(peers.count >= 4, "seed \(seed)")
        #expect(peers.count <= 14, "seed \(seed)")
      }
    }
  }

  @Test func `the same seed draws the same`() {
    var (first, second) = (Net(32, seed: 5), Net(32, seed: 5))
    first.run(40)
    second.run(40)
    #expect(
      first.peers.map { $0.values.map(\.peer).sorted() }
        == second.peers.map { $0.values.map(\.peer).sorted() })
  }

  @Test func `devices that go are replaced, and the rest stays connected`() {
    for seed: UInt64 in 1...10 {
      var net = Net(40, seed: seed)
      net.run(30)
      for index in 0..<20 { net.stop(index) }
      net.run(120)
      #expect(net.isConnected, "seed \(seed)")
      for index in 20..<40 { #expect(net.peers[index].count >= 4, "seed \(seed)") }
    }
  }

  @Test func `devices that have enough let newcomers in, and close one that is too many later`() {
    var plan = OverlayPlan(seed: 7)
    let net = Net(40, seed: 7)
    var peers: [SessionID: OverlayPlan.Peer] = [:]
    for index in 1...13 {
      peers[SessionID(rawValue: UInt64(index))] = OverlayPlan.Peer(
        device: net.ids[index], origin: .accepted, openedAt: 1_000)
    }
    let candidates = Array(net.ids.dropFirst())
    #expect(plan.decide(candidates: candidates, peers: peers, at: 2_000).closes.isEmpty)
    #expect(plan.nextDue == 31_000)
    let closes = plan.decide(candidates: candidates, peers: peers, at: 31_000).closes
    #expect(closes.count == 1)
    for close in closes { peers[close] = nil }
    #expect(plan.decide(candidates: candidates, peers: peers, at: 90_000).closes.isEmpty)
  }

  @Test func `configured sessions are never one too many`() {
    var plan = OverlayPlan(seed: 8)
    let net = Net(40, seed: 8)
    var peers: [SessionID: OverlayPlan.Peer] = [:]
    for index in 1...20 {
      peers[SessionID(rawValue: UInt64(index))] = OverlayPlan.Peer(
        device: net.ids[index], origin: .configured, openedAt: 0)
    }
    for time: UInt64 in 1...10 {
      let decision = plan.decide(
        candidates: Array(net.ids.dropFirst()), peers: peers, at: time * 60_000)
      #expect(decision.closes.isEmpty)
    }
  }

  @Test func `other devices are drawn now and then, and the old sessions end`() {
    var net = Net(40, seed: 9)
    net.run(60)
    let before = net.peers.map { Set($0.values.filter(\.isDialled).map(\.peer)) }
    net.run(400, milliseconds: 5_000)
    let after = net.peers.map { Set($0.values.filter(\.isDialled).map(\.peer)) }
    let changed = zip(before, after).count { $0 != $1 }
    #expect(changed > 30)
    #expect(net.isConnected)
    for peers in net.peers { #expect(peers.count <= 14) }
  }

  @Test func `an overlay that came apart heals when it is said who was left behind`() {
    for seed: UInt64 in 1...10 {
      var net = Net(30, seed: seed)
      for index in 0..<15 { net.side[index] = 1 }
      net.run(60)
      #expect(!net.isConnected)
      net.side = Array(repeating: 0, count: 30)
      let others = net.ids
      net.plans[0].setLeftBehind(Array(others[15...]))
      // A device that was not reached before is not tried again for a while.
      net.run(125)
      #expect(net.isConnected, "seed \(seed)")
    }
  }

  @Test func `a device that reaches nobody draws rarely`() {
    var net = Net(200, seed: 11)
    for index in 1..<200 { net.isUp[index] = false }
    var dialled = Set<DeviceID>()
    for _ in 0..<600 {
      net.now += 100
      let decision = net.plans[0].decide(
        candidates: Array(net.ids.dropFirst()), peers: [:], at: net.now)
      for device in decision.dials.sorted() {
        dialled.insert(device)
        net.plans[0].lost(device, at: net.now)
      }
    }
    // A minute: four at first, then four after each wait that doubles up to half a minute.
    #expect(dialled.count < 60)
  }
}
