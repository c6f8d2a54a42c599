import KithCrypto
import Testing

@testable import KithCore

/// Only a little is under way to a peer at a time, however much it lacks, and all of it arrives.
@Suite struct BackPressureTests {
  private func store(_ number: Int) throws -> StoreIdentifier {
    try #require(StoreIdentifier("com.example.full\(number)"))
  }

  /// Two devices, of which the first has so many full stores more.
  private func world(stores: Int, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    for number in 0..<stores {
      let store = try store(number)
      // Of stores that no program has opened less would be kept.
      for index in 0...1 { world.perform(.open(store, .standard), on: index) }
      world.write([set("full", blob(1_000_000))], on: 0, in: store)
    }
    return world
  }

  @Test func `a pull of many stores was all sent at once`() throws {
    let world = try world(stores: 20, seed: 170)
    world.connectAll()
    // Values that are written meanwhile, in stores that were answered and in others, arrive too.
    for number in 0..<20 {
      for _ in 0..<10 { _ = world.deliverOne() }
      world.write([set("more", .integer(Int64(number)))], on: 0, in: try store(number))
    }
    world.settle()
    let most = try #require(world.links[[0, 1]]?.ends[0].mostBytes)
    // 8 MiB and one store's answer.
    #expect(most > 8 << 20)
    #expect(most < (8 << 20) + 2_000_000)
    world.checkConvergence("after a large pull")
    #expect(world.devices[1].replica.stores.count == 21)
    let link = try #require(world.devices[0].replica.links.values.first)
    let isNothingOwed = link.stores.values.allSatisfy {
      if case nil = $0.owed { true } else { false }
    }
    #expect(isNothingOwed)
  }

  @Test func `first answers were sent into a link that takes nothing`() throws {
    let world = try world(stores: 2, seed: 171)
    world.connectAll()
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    world.perform(.writable(session, false), on: 0)
    world.settle()
    world.write([set("more", 1)], on: 0, in: try store(1))
    world.settle()
    let most = try #require(world.links[[0, 1]]?.ends[0].mostBytes)
    #expect(most < 100_000)
    world.perform(.writable(session, true), on: 0)
    world.settle()
    world.checkConvergence("once it takes more")
  }

  @Test
  func `change sets that a peer had got meanwhile were sent again with an answer that had waited`()
    throws
  {
    let world = try world(stores: 1, seed: 172)
    let store = try store(0)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    world.write([set("more", 1)], on: 0, in: store)
    // The peer asks once more, and gets what it lacks only then.
    world.perform(.writable(session, false), on: 0)
    let asked = world.devices[1].replica.stores[store]?.have()
    let have = Have(
      number: 9, isWhole: true, listsAll: false,
      stores: [try #require(asked)])
    for message in have.messages() {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      world.perform(.received(session, inbound), on: 0)
    }
    world.settle()
    world.links[[0, 1]]?.ends[0].mostBytes = 0
    world.perform(.writable(session, true), on: 0)
    world.settle()
    #expect(world.links[[0, 1]]?.ends[0].mostBytes == 0)
    world.checkConvergence("not sent twice")
  }

  @Test func `a push was encoded anew for every session`() throws {
    let world = try TestWorld(devices: 4, seed: 173)
    world.connectAll()
    world.settle()
    _ = world.devices[0].replica.handle(
      .write(WriteID(rawValue: 1), TestWorld.store, [set("k", blob(100_000))]),
      at: world.instant(of: 0))
    let effects = world.devices[0].replica.handle(.flush, at: world.instant(of: 0))
    var places: [UnsafeRawPointer?] = []
    for case .send(_, let message) in effects where message.count > 100_000 {
      places.append(message.withUnsafeBytes { $0.baseAddress })
    }
    #expect(places.count == 3)
    #expect(Set(places).count == 1)
  }
}
