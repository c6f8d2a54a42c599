import KithCrypto
import Testing

@testable import KithCore

@Suite struct QuotaReplicationTests {
  let small = Policy(totalBytes: 1_000, keys: 8)

  @Test func `a write that does not fit is refused with the numbers, and changes nothing`() throws {
    let world = try TestWorld(devices: 1, seed: 20, policy: small)
    world.write([set("a", blob(600))], on: 0)
    let before = world.view(0)
    let id = world.write([set("b", blob(600)), set("c", 1)], on: 0)
    guard case .quotaExceeded(let numbers) = world.devices[0].refused[id] else {
      Issue.record("not refused")
      return
    }
    #expect(numbers.limitBytes == 1_000)
    #expect(numbers.askedBytes > 1_200)
    #expect(world.view(0) == before)
    world.checkInvariants("refused")
  }

  @Test func `removals are always accepted, and make room`() throws {
    let world = try TestWorld(devices: 1, seed: 21, policy: small)
    world.write([set("a", blob(900))], on: 0)
    world.write([remove("a"), set("b", blob(900))], on: 0)
    #expect(Array(world.view(0).keys) == ["b"])
    world.checkInvariants("removed")
  }

  @Test func `keys and values over the policy are refused by name`() throws {
    let world = try TestWorld(devices: 1, seed: 22, policy: Policy(valueBytes: 100))
    let long = world.write([set(String(repeating: "k", count: 65), 1)], on: 0)
    let empty = world.write([set("", 1)], on: 0)
    let large = world.write([set("v", blob(101))], on: 0)
    #expect(
      world.devices[0].refused[long]
        == .invalidKey(key: String(repeating: "k", count: 65), bytes: 65, limit: 64))
    #expect(world.devices[0].refused[empty] == .invalidKey(key: "", bytes: 0, limit: 64))
    guard case .valueTooLarge("v", _, 100) = world.devices[0].refused[large] else {
      Issue.record("not refused")
      return
    }
  }

  @Test func `two devices overfill while apart: the later is refused and told`() throws {
    let world = try TestWorld(devices: 2, seed: 23, policy: small)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("x", blob(600))], on: 0)
    world.now.wallMilliseconds += 10
    let lost = world.write([set("y", blob(600)), set("z", 1)], on: 1)
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("overfilled")
    world.checkInvariants("overfilled")
    #expect(Array(world.view(0).keys) == ["x"] || Array(world.view(0).keys.sorted()) == ["y", "z"])
    let told = world.devices.flatMap { $0.replica.refusals(of: TestWorld.store) }
    if world.devices[1].replica.refusals(of: TestWorld.store).isEmpty {
      // Both had published before they knew of each other: nothing is refused, one is hidden.
      #expect(world.devices[0].replica.hiddenEntries(of: TestWorld.store).map(\.key) != [])
    } else {
      #expect(told.map(\.operations) == [world.writes[lost]])
      #expect(world.devices[1].viewChanges.contains { $0.reason == .quotaViolationChange })
    }
  }

  @Test func `a refusal is kept over restarts until it is cleared`() throws {
    let world = try TestWorld(devices: 2, seed: 24, policy: small)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    // Only device 1 keeps drafts: device 0 publishes to a third, as it were, by meeting it first.
    world.write([set("x", blob(600))], on: 0)
    world.write([set("y", blob(600))], on: 1)
    world.tamper = { from, _, message in
      // Device 1's answer is held back until device 0 has published.
      from == 1 && message.isEmpty ? nil : message
    }
    world.connect(0, 1)
    world.settle()
    world.tamper = nil
    world.checkConvergence("refused")
    for index in 0...1 {
      let before = world.devices[index].replica.refusals(of: TestWorld.store)
      try world.restart(index)
      #expect(world.devices[index].replica.refusals(of: TestWorld.store) == before)
      guard let last = before.last else { continue }
      world.perform(.takeRefusals(TestWorld.store, through: last.number), on: index)
      try world.restart(index)
      #expect(world.devices[index].replica.refusals(of: TestWorld.store).isEmpty)
    }
  }

  @Test func `a hidden write is shown again when it fits`() throws {
    let world = try TestWorld(devices: 3, seed: 25, policy: small)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    // Published apart, to a peer each would need; so connect in pairs that do not meet.
    world.connect(0, 1)
    world.settle()
    world.write([set("x", blob(600))], on: 0)
    world.settle()
    world.disconnectAll()
    world.write([set("y", blob(300))], on: 2)
    world.connect(1, 2)
    world.settle()
    world.connect(0, 1)
    world.settle()
    world.checkConvergence("fits")
    #expect(world.view(0).count == 2)
    world.disconnectAll()
    world.write([set("x", blob(690))], on: 0)
    world.write([set("y", blob(390))], on: 2)
    world.connect(0, 1)
    world.settle()
    world.connect(1, 2)
    world.settle()
    world.checkInvariants("over")
    world.checkConvergence("over")
    world.write([remove("x")], on: 1)
    world.settle()
    world.checkConvergence("room")
    world.checkInvariants("room")
  }

  @Test func `a local write that changes other keys says which`() throws {
    let world = try TestWorld(devices: 2, seed: 26, policy: small)
    try hideOne(in: world)
    let hidden = world.devices[0].replica.hiddenEntries(of: TestWorld.store).map(\.key)
    try #require(hidden.count == 1)
    let shown = try #require(world.view(0).keys.sorted().first { $0.text.hasPrefix("big") })
    world.devices[0].viewChanges = []
    world.write([remove(shown.text)], on: 0)
    let changes = world.devices[0].viewChanges
    #expect(changes.map(\.reason) == [nil, .quotaViolationChange])
    #expect(changes.last?.changes.map(\.key) == hidden)
    world.settle()
    world.checkConvergence("other keys")
  }

  /// Leaves one of two large values hidden on both devices: each was published before its device
  /// knew of the other.
  private func hideOne(in world: TestWorld) throws {
    world.connectAll()
    world.settle()
    world.write([set("big0", blob(600))], on: 0)
    world.write([set("big1", blob(600))], on: 1)
    world.settle()
    world.checkConvergence("hidden")
  }
}

/// Published claims and fallbacks follow `Docs/Protocol.md` ("Writing and publishing"). Entries
/// with other claims or fallbacks are quarantined.
@Suite struct ClaimTests {
  @Test func `a value that grows claims anew and carries what it replaced`() throws {
    let world = try TestWorld(devices: 2, seed: 80)
    world.connectAll()
    world.settle()
    func newest() throws -> Entry {
      try #require(world.devices[1].replica.stores[TestWorld.store]?.state.slots["k"]?.newest.entry)
    }
    world.write([set("k", blob(10))], on: 0)
    world.settle()
    let first = try newest()
    #expect(first.fallback == nil)
    world.write([set("k", blob(20))], on: 0)
    world.settle()
    let grown = try newest()
    #expect(first.claim < grown.claim)
    #expect(grown.fallback?.value == first.value)
    #expect(grown.fallback?.claim == first.claim)
    world.write([set("k", blob(15))], on: 1)
    world.settle()
    let shrunk = try newest()
    #expect(shrunk.claim == grown.claim)
    #expect(shrunk.fallback == grown.fallback)
    #expect(shrunk.replaced == grown.stamp)
  }

  @Test func `a fallback claimed no earlier than its entry is set aside`() throws {
    let world = try TestWorld(devices: 2, seed: 81)
    world.connectAll()
    world.settle()
    let device = world.devices[0].keys.id
    let clock = HybridTime(milliseconds: world.now.wallMilliseconds)
    let claim = Claim(clock: clock, device: device, group: 0)
    let value = try EncodedValue(1)
    let entry = Entry(
      key: "k", stamp: Stamp(clock: clock, device: device), content: .value(value), claim: claim,
      fallback: Fallback(value: value, claim: claim))
    try world.publish([entry.plaintext()], by: 0, to: 1)
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.counters.quarantined == 1)
  }

  @Test func `a stamp of another member cannot be judged`() throws {
    let world = try TestWorld(devices: 2, seed: 82)
    world.connectAll()
    world.settle()
    let clock = HybridTime(milliseconds: world.now.wallMilliseconds)
    let other = world.devices[1].keys.id
    let entry = Entry(
      key: "k", stamp: Stamp(clock: clock, device: other), content: .value(try EncodedValue(1)),
      claim: Claim(clock: clock, device: other, group: 0))
    try world.publish([entry.plaintext()], by: 0, to: 1)
    #expect(world.view(1).isEmpty)
    #expect(world.devices[1].replica.stores[TestWorld.store]?.log.vector == [:])
  }
}
