import KithCrypto
import Testing

@testable import KithCore

/// The bounds of stores, and of what is told of them.
@Suite struct StoreLimitTests {
  private func store(_ number: Int) throws -> StoreIdentifier {
    try #require(StoreIdentifier("com.example.Store\(number)"))
  }

  @Test(arguments: [
    Policy(totalBytes: -1), Policy(keys: -1), Policy(keyBytes: -1), Policy(valueBytes: -1),
    Policy(totalBytes: .max), Policy(keys: 1 << 40), Policy(keyBytes: 1 << 40),
    Policy(valueBytes: .max),
  ])
  func `limits out of bounds trapped when peers were told of them`(policy: Policy) throws {
    let world = try TestWorld(devices: 2, seed: 160)
    let other = try store(1)
    let before = world.devices[0].disk
    world.perform(.open(other, policy), on: 0)
    #expect(world.devices[0].refusedStores[other] == .policyOutOfBounds(policy))
    // Nor does a store that is open take them.
    world.perform(.open(TestWorld.store, policy), on: 0)
    #expect(world.devices[0].refusedStores[TestWorld.store] == .policyOutOfBounds(policy))
    #expect(world.devices[0].disk == before)
    #expect(world.devices[0].replica.storeIdentifiers == [TestWorld.store])
    world.write([set("k", 1)], on: 0)
    world.connectAll()
    world.settle()
    world.checkConvergence("out of bounds")
  }

  /// A later version may permit more; a session with it goes on.
  @Test func `a store with larger limits than any is left out alone`() throws {
    let world = try TestWorld(devices: 2, seed: 165)
    let large = try store(1)
    var policy = Policy.maximum
    policy.totalBytes += 1
    world.devices[0].replica.create(large, policy: policy)
    world.write([set("k", 1)], on: 0)
    world.connectAll()
    world.settle()
    #expect(world.devices[1].replica.storeIdentifiers == [TestWorld.store])
    #expect(world.text("k", on: 1) == 1)
    // It has its own limits for it, too.
    world.perform(.open(large, .standard), on: 1)
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(
      world.devices[1].reports.contains { if case .policyMismatch = $0 { true } else { false } })
  }

  @Test func `a store more than a have may list had every peer close`() throws {
    let world = try TestWorld(devices: 2, seed: 161)
    for number in 1..<Limits.stores { world.perform(.open(try store(number), .standard), on: 0) }
    #expect(world.devices[0].refusedStores.isEmpty)
    let excess = try store(Limits.stores)
    world.perform(.open(excess, .standard), on: 0)
    #expect(world.devices[0].refusedStores == [excess: .tooManyStores(limit: Limits.stores)])
    // One that is open may be opened again.
    world.perform(.open(try store(1), .standard), on: 0)
    #expect(world.devices[0].refusedStores.count == 1)
    world.connectAll()
    world.settle()
    #expect(world.devices[1].replica.stores.count == Limits.stores)
  }

  @Test func `both sides name the stores that one of them does not take`() throws {
    let world = try TestWorld(devices: 2, seed: 164)
    for number in 1..<Limits.stores { world.perform(.open(try store(number), .standard), on: 0) }
    let own = try (300..<304).map { try store($0) }
    for name in own {
      world.perform(.open(name, .standard), on: 1)
      world.write([set("k", 1)], on: 1, in: name)
    }
    world.connectAll()
    world.settle()
    // Device 1 took what it had room for.
    #expect(world.devices[1].replica.stores.count == Limits.stores)
    func told(_ index: Int) throws -> NodeStatus.Device {
      try #require(world.devices[index].replica.status().devices.first { !$0.isThisDevice })
    }
    let (first, second) = (try told(0), try told(1))
    #expect(first.storesRejectedHere == own && first.storesRejectedThere == [])
    #expect(second.storesRejectedThere == own && second.storesRejectedHere.count == own.count)
    #expect(own.allSatisfy { second.behind[$0] == 1 }, "it does not have everything")
    let alone = try TestWorld(devices: 2, seed: 165)
    alone.connectAll()
    alone.settle()
    let status = alone.devices[0].replica.status()
    #expect(status.devices.allSatisfy { $0.storesRejectedThere.isEmpty })
  }

  @Test func `a have of many large vectors goes in several messages, and says the same`() throws {
    let world = try TestWorld(devices: 1, seed: 162)
    let device = world.devices[0].keys.id
    var vector: [ChainID: UInt64] = [:]
    for number in 0..<Limits.chainsPerStore {
      let incarnation = Incarnation(rawValue: .max - UInt64(number))
      vector[ChainID(device: device, incarnation: incarnation)] = Limits.sequence
    }
    let stores = try (0..<10).map { number in
      StoreHave(
        store: try store(number), vector: vector, digest: .zero, policy: .maximum)
    }
    let have = Have(
      number: 7, isWhole: true, listsAll: true, stores: stores)
    let messages = have.messages()
    #expect(messages.count > 1)
    #expect(messages.allSatisfy { $0.count <= Limits.haveMessageBytes })
    var parts: [Have] = []
    for message in messages {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      guard case .have(let part) = inbound.body else { continue }
      parts.append(part)
    }
    let list = try #require(parts.last)
    parts.removeLast()
    #expect(list.listsAll && !list.isWhole && list.number == 0)
    #expect(list.stores.map(\.store) == stores.map(\.store))
    #expect(parts.allSatisfy { $0.isWhole && !$0.listsAll && $0.number == 7 })
    #expect(parts.flatMap(\.stores) == stores)
    // A small one is one message, as before.
    #expect(
      Have(
        number: 1, isWhole: true, listsAll: true,
        stores: Array(stores.prefix(1))
      ).messages().count == 1)
  }

  @Test func `a pull from a device whose have takes several messages ends`() throws {
    let world = try TestWorld(devices: 2, seed: 163)
    for number in 0..<5 {
      let identifier = try store(number)
      world.perform(.open(identifier, .standard), on: 0)
      world.write([set("k", 1)], on: 0, in: identifier)
      for number in 0..<4_000 as Range<UInt64> {
        let chain = ChainID(
          device: world.devices[1].keys.id, incarnation: Incarnation(rawValue: number))
        world.devices[0].disk.stores[identifier]?.vector[chain] = 1
      }
    }
    try world.restart(0)
    var haves = 0
    world.tamper = { from, _, message in
      if from == 0, case .have? = InboundMessage(decoding: message, account: world.account)?.body {
        haves += 1
      }
      return message
    }
    world.connectAll()
    world.settle()
    #expect(haves > 1)
    for number in 0..<5 {
      #expect(world.devices[1].replica.view(of: try store(number)).count == 1)
    }
  }
}
