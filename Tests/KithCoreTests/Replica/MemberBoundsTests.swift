import KithCrypto
import Testing

@testable import KithCore

/// A member can load a node only within bounds, even with messages that are each valid
/// (`Docs/Testing.md`, "The promises", promise 8).
@Suite struct MemberBoundsTests {
  @Test func `entries set aside for ever are kept up to a bound, the latest ones`() throws {
    let world = try TestWorld(devices: 2, seed: 260)
    world.connectAll()
    world.settle()
    for number in 0..<3 {
      let ahead = HybridTime(milliseconds: world.now.wallMilliseconds + 30_000)
      let entries = try (0..<100).map { place in
        let entry = try world.entry("k \(number) \(place)", on: 0)
        // Written after it is published.
        return Entry(
          key: entry.key, stamp: Stamp(clock: ahead, device: entry.stamp.device),
          content: entry.content, claim: entry.claim
        ).plaintext()
      }
      try world.publish(entries, by: 0, to: 1)
    }
    let store = try #require(world.devices[1].replica.stores[TestWorld.store])
    // All were counted, and not all are kept; those of the last change set all are.
    #expect(store.quarantined == 300)
    #expect(store.log.quarantined.count == Limits.quarantined)
    let kept = store.log.changeSets.values.map { ($0.reference.sequence, $0.indices.count) }
      .sorted { $0.0 < $1.0 }
    #expect(kept.map(\.1) == [56, 100, 100])
    // So it is on the disk.
    try world.restart(1)
    #expect(
      world.devices[1].replica.stores[TestWorld.store]?.log.quarantined.count
        == Limits.quarantined)
  }

  @Test func `a statement is short, and a message holds so many`() throws {
    let world = try TestWorld(devices: 1, seed: 261)
    let chain = try world.chain(of: 0)
    func extent(_ entries: Int, of store: StoreIdentifier = TestWorld.store) -> Extent {
      Extent(
        store, digest: Extent.digest(of: [:]),
        entries: Dictionary(
          uniqueKeysWithValues: (0..<UInt64(entries)).map {
            (ChainID(device: chain.device, incarnation: Incarnation(rawValue: $0)), 1)
          }))
    }
    #expect(Extent(extent(Limits.statementEntries).body, isSigned: true) != nil)
    #expect(Extent(extent(Limits.statementEntries + 1).body, isSigned: true) == nil)
    #expect(Extent(extent(Limits.statementEntries + 1).body, isSigned: false) != nil)
    // A field that no version knows: it decodes, and is passed on byte for byte.
    let long =
      extent(1).body + [0xfa, 0x01, 0x80, 0x10] + [UInt8](repeating: 0, count: 2_048)
    #expect(Extent(long, isSigned: true) == nil)
    let age = StatementAge(started: .zero, number: 1)
    let keys = world.devices[0].keys
    let one = Statement(extent(1), age: age, account: world.account, keys: keys)
    func message(of count: Int) -> [UInt8] {
      var message = WireMessage()
      var group = StatementGroup.groups(of: [one])[0]
      group.said = (0..<count).map { number in
        var said = group.said[0]
        said.device = UInt64(number)
        return said
      }
      message.have.statements = [group.wire]
      return message.encodedBytes()
    }
    let (most, more) = (Limits.statementsPerMessage, Limits.statementsPerMessage + 1)
    #expect(InboundMessage(decoding: message(of: most), account: world.account) != nil)
    #expect(InboundMessage(decoding: message(of: more), account: world.account) == nil)
  }

  @Test func `a batch that never ends ends the session`() throws {
    let world = try TestWorld(devices: 2, seed: 262)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    var message = WireMessage()
    message.batch.store = TestWorld.store.rawValue
    message.batch.more = true
    let bytes = message.encodedBytes()
    let inbound = try #require(InboundMessage(decoding: bytes, account: world.account))
    guard case .batch(let part) = inbound.body else { throw CancellationError() }
    // As if so many bytes had come: they would be 128 MiB.
    let first = world.devices[1].replica.links[session]?.receive(
      part, size: Limits.batchBytes, keeping: nil)
    guard case .more = first else { throw CancellationError() }
    world.perform(.received(session, inbound), on: 1)
    #expect(world.devices[1].replica.links[session] == nil)
    #expect(world.devices[1].closed.last == .protocolViolation)
  }

  @Test
  func `a peer that cannot judge a change set is sent all records again, three times at most`()
    throws
  {
    let world = try TestWorld(devices: 2, seed: 264)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    var store = try #require(world.devices[0].replica.stores[TestWorld.store])
    var have = store.have()
    func ask() throws -> Int {
      let messages = Have(
        number: 9, isWhole: true, listsAll: true, stores: [have]
      ).messages()
      for message in messages {
        world.perform(
          .received(
            session, try #require(InboundMessage(decoding: message, account: world.account))),
          on: 1)
      }
      let sent = world.links[[0, 1]]?.ends.first { $0.to == 0 }?.messages ?? []
      return sent.count { message in
        if case .records = InboundMessage(decoding: message, account: world.account)?.body {
          true
        } else {
          false
        }
      }
    }
    #expect(try ask() == 0)
    have.isUnjudged = true
    #expect(try ask() == 1)
    for _ in 0..<4 { _ = try ask() }
    #expect(try ask() == Limits.recordsSentAgain)
  }
}
