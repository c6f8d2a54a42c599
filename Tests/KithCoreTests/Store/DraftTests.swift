import KithCrypto
import Testing

@testable import KithCore

/// The drafts that may be forgotten for later ones, and those that may not.
@Suite struct DraftTests {
  private func draft(_ operations: KithCore.Operation...) -> Draft {
    Draft(ordinal: 1, clock: .zero, operations: operations)
  }

  @Test func `a draft makes way only for a write of the same key that stands wherever it does`() {
    let large = set("k", blob(100))
    let small = set("k", blob(10))
    #expect(draft(small).covers(draft(large)))
    #expect(draft(large).covers(draft(large)))
    #expect(draft(remove("k")).covers(draft(large)))
    #expect(draft(remove("k")).covers(draft(remove("k"))))
    #expect(!draft(large).covers(draft(small)), "the larger might be refused")
    #expect(!draft(small).covers(draft(remove("k"))), "any value might be refused")
    #expect(!draft(small).covers(draft(set("l", blob(100)))))
    #expect(!draft(small).covers(draft(large, set("l", 1))), "the other key would be lost")
    #expect(!draft(small, set("l", 1)).covers(draft(large)), "the other key may have it refused")
  }

  @Test func `a larger write that is refused leaves the one before it`() throws {
    let world = try TestWorld(devices: 3, seed: 140, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(100))], on: 2)
    world.write([set("k", blob(600))], on: 2)
    world.connect(0, 1)
    world.settle()
    world.write([set("theirs", blob(600))], on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
    #expect(world.text("k", on: 0) == blob(100))
    #expect(
      world.devices[2].replica.refusals(of: TestWorld.store).map(\.operations)
        == [[set("k", blob(600))]])
    world.checkConvergence("larger")
  }

  @Test(arguments: [false, true])
  func `a write that a smaller one took the place of was lost with it`(restarts: Bool) throws {
    let policy = Policy(totalBytes: 300, keys: 10, keyBytes: 64, valueBytes: 300)
    let world = try TestWorld(devices: 3, seed: 142, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.connect(1, 2)
    world.write([set("other", blob(131))], on: 1)
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(97))], on: 0)
    world.write([set("m", blob(77))], on: 0)
    // With theirs there is room for either of the two keys. The first keeps its place.
    world.write([set("k", blob(90))], on: 0)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count == 2)
    if restarts { try world.restart(0) }
    world.connectAll()
    world.settle()
    #expect(world.text("k", on: 1) == blob(90))
    #expect(
      world.devices[0].replica.refusals(of: TestWorld.store).map(\.operations)
        == [[set("m", blob(77))]])
    world.checkInvariants("the place")
    world.checkConvergence("the place")
  }

  @Test(arguments: [false, true])
  func `a value that a draft replaced came back from the disk once the draft was gone`(
    isRefused: Bool
  ) throws {
    let world = try TestWorld(devices: 2, seed: 143, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    world.write([set("k", blob(600))], on: 0)
    // Met and published, or refused, before a flush has made it durable.
    world.write([set("k", blob(500))], on: 0, flush: false)
    if isRefused { world.write([set("theirs", blob(600))], on: 1) }
    world.connectAll()
    while world.devices[0].replica.hasUnpublished(TestWorld.store), world.deliverOne() {}
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts == [:])
    let told = world.devices[0].replica.refusals(of: TestWorld.store).map(\.operations)
    try world.restart(0)
    #expect(!world.devices[0].replica.hasUnpublished(TestWorld.store))
    #expect(told.count + world.view(0).count { $0.key == Key("k") } == 1)
    world.connectAll()
    world.settle()
    world.checkConvergence("gone")
  }

  @Test func `drafts are laid anew after a restart, with the rooms they claimed`() throws {
    let world = try TestWorld(devices: 2, seed: 141, policy: Policy(totalBytes: 1_000))
    world.write([set("a", blob(400))], on: 0)
    world.write([set("b", blob(400))], on: 0)
    try world.restart(0)
    #expect(world.view(0).count == 2)
    let id = world.write([set("c", blob(400))], on: 0)
    #expect(world.devices[0].refused[id] != nil)
    world.connectAll()
    world.settle()
    #expect(world.view(1).count == 2)
    world.checkConvergence("laid anew")
  }
}
