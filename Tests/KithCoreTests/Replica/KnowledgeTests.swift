import KithCrypto
import Testing

@testable import KithCore

/// A device's memory of the chains that others cover.
@Suite struct KnowledgeTests {
  private func known(of peer: Int, on index: Int, in world: TestWorld) -> [ChainID: UInt64] {
    let device = world.devices[peer].keys.id
    return world.devices[index].replica.believed(of: device, in: TestWorld.store)
  }

  @Test func `a device that was restored was taken to cover what it had lost`() throws {
    let world = try TestWorld(devices: 2, seed: 200)
    world.connectAll()
    world.settle()
    let backup = world.devices[1].disk
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    #expect(known(of: 1, on: 0, in: world)[chain] == 1)
    world.devices[1].disk = backup
    try world.restart(1)
    world.connectAll()
    // Its first have is there, and no answer to it yet.
    world.tamper = { from, _, message in from == 0 ? nil : message }
    world.settle()
    #expect(known(of: 1, on: 0, in: world)[chain] == nil)
    world.tamper = nil
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(known(of: 1, on: 0, in: world)[chain] == 1)
  }

  @Test func `chains that nobody has were remembered for ever`() throws {
    let world = try TestWorld(devices: 2, seed: 201)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    for number in 0..<3 as Range<UInt64> {
      let chains = (0..<100).map {
        ChainID(
          device: world.devices[1].keys.id, incarnation: Incarnation(rawValue: number << 32 | $0))
      }
      let have = Have(
        number: 0, isWhole: false, listsAll: false,
        stores: [
          StoreHave(
            store: TestWorld.store,
            vector: Dictionary(uniqueKeysWithValues: chains.map { ($0, 1) }),
            digest: nil, policy: .standard)
        ])
      let message = InboundMessage(decoding: have.messages()[0], account: world.account)
      world.perform(.received(session, try #require(message)), on: 0)
    }
    #expect(known(of: 1, on: 0, in: world).isEmpty)
  }

  @Test func `chains that nobody has, of many stores, were remembered as long as the session`()
    throws
  {
    let world = try TestWorld(devices: 2, seed: 203)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    let device = world.devices[1].keys.id
    let vector = Dictionary(
      uniqueKeysWithValues: (1...4_000 as ClosedRange<UInt64>).map {
        (ChainID(device: device, incarnation: Incarnation(rawValue: $0)), 1 as UInt64)
      })
    for number in 0..<24 {
      let store = try #require(StoreIdentifier("com.example.Many\(number)"))
      let have = Have(
        number: 0, isWhole: false, listsAll: false,
        stores: [
          StoreHave(
            store: store, vector: vector, digest: nil, policy: .standard)
        ])
      let message = InboundMessage(decoding: have.messages()[0], account: world.account)
      world.perform(.received(session, try #require(message)), on: 0)
    }
    let kept = world.devices[0].replica.links[session]?.stores.values.reduce(0) {
      $0 + $1.vector.count
    }
    #expect(try #require(kept) <= Limits.vectorEntriesPerSession)
    #expect(try #require(kept) > 4_000)
  }

  @Test func `a peer's word of a chain counts once the chain is known`() throws {
    let world = try TestWorld(devices: 3, seed: 202)
    world.connect(1, 2)
    world.connect(0, 1)
    world.settle()
    world.disconnect(0, 1)
    world.write([set("k", 1)], on: 2)
    world.settle()
    world.connect(0, 1)
    world.settle()
    world.advance(milliseconds: 250)
    world.settle()
    // The peer's first word was of a chain unknown here.
    #expect(known(of: 1, on: 0, in: world)[try world.chain(of: 2)] == 1)
  }
}
