import KithCrypto
import Testing

@testable import KithCore

/// Data that peers send, in any amount and any order, stays within bounds, ends, and leads to the
/// same state everywhere (`Docs/Protocol/bounds.md`).
@Suite struct BoundsTests {
  @Test func `a change set that nothing is left of is not passed round for ever`() throws {
    let world = try TestWorld(devices: 4, seed: 60)
    world.connectAll()
    world.settle()
    for other in 1...2 { world.disconnect(other, 3) }
    // The first change set is spoilt on its way, so that the chain is not covered anywhere.
    var recorded: [[UInt8]] = []
    world.tamper = { from, _, message in
      guard from == 3, case .batch(let part)? = Self.body(of: message, in: world) else {
        return message
      }
      guard part.covers.first?.from ?? 0 > 0 else { return nil }
      recorded.append(message)
      return message
    }
    for number in 0..<3 {
      world.write([set("k", .integer(Int64(number)))], on: 3)
      world.settle()
    }
    world.tamper = nil
    #expect(world.text("k", on: 2) == 2)
    let session = try #require(world.links[[0, 3]]?.ends.first?.session)
    let replayed = try #require(recorded.first)
    let inbound = try #require(InboundMessage(decoding: replayed, account: world.account))
    world.perform(.received(session, inbound), on: 0)
    world.settle(limit: 200)
    world.advance(milliseconds: 31_000)
    world.settle()
    world.checkConvergence("passed round")
  }

  @Test func `change sets received and not covered yet are no divergence`() throws {
    let world = try TestWorld(devices: 3, seed: 61)
    world.connect(0, 2)
    world.connect(0, 1)
    world.settle()
    world.disconnect(0, 1)
    world.tamper = { from, _, message in
      guard from == 2, case .batch(let part)? = Self.body(of: message, in: world) else {
        return message
      }
      return part.covers.first?.from ?? 0 > 0 ? message : nil
    }
    world.write([set("a", 1)], on: 2)
    world.write([set("b", 1)], on: 2)
    world.settle()
    world.disconnect(0, 2)
    world.tamper = nil
    world.connect(0, 1)
    world.settle()
    #expect(world.text("b", on: 1) == 1)
    for device in world.devices { #expect(device.replica.counters.divergences == 0) }
  }

  @Test func `a part that was dropped keeps its batch from being counted`() throws {
    let large = Policy(totalBytes: 4 << 20, keys: 10, valueBytes: 1 << 20)
    let world = try TestWorld(devices: 3, seed: 62, policy: large)
    world.connect(0, 2)
    world.settle()
    for number in 0..<3 { world.write([set("k\(number)", blob(700_000))], on: 0) }
    world.settle()
    var parts = 0
    world.tamper = { from, to, message in
      guard from == 0, to == 1, case .batch? = Self.body(of: message, in: world),
        let session = world.links[[0, 1]]?.ends[0].session
      else { return message }
      parts += 1
      if parts == 1 {
        world.devices[1].replica.links[session]?[TestWorld.store].isMismatched = true
      } else {
        world.devices[1].replica.links[session]?[TestWorld.store].isMismatched = false
      }
      return message
    }
    world.connect(0, 1)
    world.settle()
    #expect(parts == 4, "one for each change set, and one for the covers")
    world.tamper = nil
    world.advance(milliseconds: 31_000)
    world.settle()
    world.checkConvergence("dropped part")
    #expect(world.view(1).count == 3)
  }

  @Test func `addresses that do not fit are not passed round for ever`() throws {
    let world = try TestWorld(devices: 4, seed: 63)
    let absent = world.devices[3].keys.id
    for index in 0...1 {
      world.devices[index].replica.contacts = Contacts([
        absent: (0..<Limits.addressesPerDevice).map { "192.0.\(index).\($0):4114" }
      ])
    }
    for (a, b) in [(0, 1), (1, 2), (0, 2)] { world.connect(a, b) }
    world.settle(limit: 500)
    for index in 0...2 {
      #expect(
        world.devices[index].replica.contacts.addresses[absent]?.count == Limits.addressesPerDevice)
    }
  }

  @Test func `the chains that a peer says it covers stay bounded`() throws {
    let world = try TestWorld(devices: 2, seed: 64)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    let device = world.devices[0].keys.id
    for round in 0..<3 {
      var vector: [ChainID: UInt64] = [:]
      for number in 0..<2_000 {
        let incarnation = Incarnation(rawValue: UInt64(round * 2_000 + number))
        vector[ChainID(device: device, incarnation: incarnation)] = 1
      }
      let have = Have(
        number: 0, isWhole: false, listsAll: false,
        stores: [
          StoreHave(
            store: TestWorld.store, vector: vector, digest: nil, policy: .standard)
        ])
      let inbound = InboundMessage(decoding: have.messages()[0], account: world.account)
      world.perform(.received(session, try #require(inbound)), on: 1)
    }
    let replica = world.devices[1].replica
    #expect(
      replica.links[session]?[TestWorld.store].vector.count ?? 0 <= Limits.chainsPerStore)
    #expect(
      replica.believed(of: device, in: TestWorld.store).count <= Limits.chainsPerStore)
  }

  @Test func `a store listed twice makes a have malformed`() throws {
    let world = try TestWorld(devices: 1, seed: 65)
    let one = StoreHave(
      store: TestWorld.store, vector: [:], digest: nil, policy: .standard)
    func message(_ stores: [StoreHave]) -> [UInt8] {
      Have(number: 1, isWhole: true, listsAll: true, stores: stores)
        .messages()[0]
    }
    #expect(InboundMessage(decoding: message([one]), account: world.account) != nil)
    #expect(InboundMessage(decoding: message([one, one]), account: world.account) == nil)
  }

  @Test func `a message of countless empty change sets or records is malformed`() throws {
    let world = try TestWorld(devices: 1, seed: 66)
    var batch = WireMessage()
    batch.batch.store = TestWorld.store.rawValue
    batch.batch.changeSets = Array(repeating: WireChangeSet(), count: 10_000)
    #expect(InboundMessage(decoding: batch.encodedBytes(), account: world.account) == nil)
    var records = WireMessage()
    records.records.records = Array(repeating: WireRecord(), count: 10_000)
    #expect(InboundMessage(decoding: records.encodedBytes(), account: world.account) == nil)
  }

  @Test func `one device cannot use up the chains of a store`() throws {
    let world = try TestWorld(devices: 2, seed: 67)
    world.connectAll()
    world.settle()
    for number in 0..<(Limits.chainsPerDevice + 5) {
      world.devices[0].replica.incarnations = Incarnations(
        current: Incarnation(rawValue: UInt64(number)))
      try world.publish([], by: 0, to: 1)
    }
    #expect(
      world.devices[1].replica.stores[TestWorld.store]?.log.chains.count
        == Limits.chainsPerDevice)
    #expect(
      world.devices[1].reports.contains { if case .authorOverLimit = $0 { true } else { false } })
  }

  @Test func `removals of one transaction are forgotten in one order`() throws {
    let device = try TestWorld(devices: 1, seed: 68).devices[0].keys.id
    let stamp = Stamp(clock: HybridTime(rawValue: 1 << 50), device: device)
    func forgotten(_ indices: [Int]) -> [EntryLocation] {
      var store = StoreReplica(
        identifier: TestWorld.store, policy: .standard)
      for index in indices {
        let entry = Entry(
          key: Key("key \(index)"), stamp: stamp, content: .removed,
          claim: Claim(clock: stamp.clock, device: device, group: 0))
        let reference = ChangeSetReference(
          device: device, incarnation: Incarnation(rawValue: 1), sequence: 1, digest: .zero)
        let location = EntryLocation(changeSet: reference, index: UInt32(index))
        let digest = Blake2b.digest256(entry.plaintext())
        _ = store.merge(KeptEntry(entry: entry, digest: digest, location: location))
      }
      return store.forgetRemovals { _ in false }
    }
    let indices = Array(0..<(Limits.removals + 50))
    #expect(forgotten(indices) == forgotten(indices.reversed()))
    #expect(forgotten(indices).count == 50)
  }

  @Test func `removals that every device covers are forgotten before older ones`() throws {
    let device = try TestWorld(devices: 1, seed: 71).devices[0].keys.id
    var store = StoreReplica(identifier: TestWorld.store, policy: .standard)
    let reference = ChangeSetReference(
      device: device, incarnation: Incarnation(rawValue: 1), sequence: 1, digest: .zero)
    for index in 0..<(Limits.removals + 3) {
      let stamp = Stamp(clock: HybridTime(rawValue: 1 << 50 + UInt64(index)), device: device)
      let entry = Entry(
        key: Key("key \(index)"), stamp: stamp, content: .removed,
        claim: Claim(clock: stamp.clock, device: device, group: 0))
      let location = EntryLocation(changeSet: reference, index: UInt32(index))
      _ = store.merge(
        KeptEntry(entry: entry, digest: Blake2b.digest256(entry.plaintext()), location: location))
    }
    // Two late ones are covered everywhere; the third to go is the oldest of all.
    let forgotten = store.forgetRemovals { [100, 200].contains($0.index) }
    #expect(forgotten.map(\.index) == [100, 200, 0])
  }

  @Test func `a clock at the end of time does not begin again`() {
    let last = HybridTime(milliseconds: (1 << 44) - 1)
    #expect(HybridTime(milliseconds: (1 << 44) + 59_999) == last)
    #expect(HybridTime(milliseconds: .max) == last)
    #expect(HybridTime(rawValue: .max).successor == HybridTime(rawValue: .max))
  }

  @Test func `store identifiers are compared as bytes`() throws {
    let composed = try #require(StoreIdentifier("caf\u{e9}"))
    let decomposed = try #require(StoreIdentifier("cafe\u{301}"))
    #expect(composed != decomposed)
    #expect(Set([composed, decomposed]).count == 2)
  }

  @Test func `a chain whose headers are lost is not begun anew`() throws {
    let device = try TestWorld(devices: 1, seed: 70).devices[0].keys.id
    let chain = ChainID(device: device, incarnation: Incarnation(rawValue: 1))
    var log = ChangeSetLog()
    log.restore(chain, covered: 5)
    #expect(log.chains[chain]?.received == 5)
  }

  private static func body(of message: [UInt8], in world: TestWorld) -> InboundMessage.Body? {
    InboundMessage(decoding: message, account: world.account)?.body
  }
}

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
      if case nil = $0.pending { true } else { false }
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
