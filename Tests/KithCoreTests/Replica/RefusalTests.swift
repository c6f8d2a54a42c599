import KithCrypto
import Testing

@testable import KithCore

/// Refusals: a transaction that was accepted and could not be published after all
/// (`Docs/Protocol/drafts.md`, "Re-checking", promise 3).
@Suite struct RefusalTests {
  @Test func `a refusal outlives restarts until the program has taken it`() throws {
    let world = try TestWorld(devices: 3, seed: 130, policy: Policy(totalBytes: 1_000))
    world.connectAll()
    world.settle()
    world.disconnectAll()
    let lost = world.write([set("mine", blob(600)), remove("nothing")], on: 2)
    let kept = world.write([set("small", 1)], on: 2)
    world.connect(0, 1)
    world.settle()
    world.write([set("theirs", blob(600))], on: 0)
    world.settle()
    world.connect(1, 2)
    world.settle()
    world.checkConvergence("refused")
    #expect(world.text("small", on: 0) == 1)
    #expect(world.devices[2].durable.isSuperset(of: [lost, kept]))
    for _ in 0..<2 {
      let refusals = world.devices[2].replica.refusals(of: TestWorld.store)
      #expect(refusals.map(\.reason) == [.quota])
      #expect(refusals.map(\.number) == [1])
      #expect(refusals.first?.operations == [set("mine", blob(600))])
      try world.restart(2)
    }
    world.perform(.takeRefusals(TestWorld.store, through: 1), on: 2)
    #expect(world.devices[2].replica.refusals(of: TestWorld.store).isEmpty)
    try world.restart(2)
    #expect(world.devices[2].replica.refusals(of: TestWorld.store).isEmpty)
  }
}
