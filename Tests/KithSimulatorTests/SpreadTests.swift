import KithSimulator
import Testing

/// Changes among many devices, over the production overlay.
@Suite struct SpreadTests {
  @Test(arguments: [8, 32]) func `a change comes to all, and its writer knows`(devices: Int) {
    let setup = Spread.Setup(devices: devices, seed: 3, changes: 2)
    let result = Spread.run(setup)
    #expect(result.connections.least >= (devices == 8 ? 7 : 4))
    #expect(result.connections.most <= 14)
    #expect(result.changes.count == 2)
    for change in result.changes {
      #expect(change.hops.most <= (devices == 8 ? 2 : 5))
      #expect(change.spreadMilliseconds.map { $0 < 500 } == true)
      #expect(change.knownMilliseconds.map { $0 < 5_000 } == true)
      // Each device sends it on at most once to each of its peers.
      #expect(change.changes.messages < devices * Int(result.connections.most))
    }
  }

  @Test func `the same seed gives the same figures`() {
    let setup = Spread.Setup(devices: 12, seed: 4, changes: 1)
    #expect(Spread.run(setup) == Spread.run(setup))
  }
}
