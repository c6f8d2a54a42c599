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

  @Test func `a word is short, and a message holds so many`() throws {
    let world = try TestWorld(devices: 1, seed: 261)
    let device = world.id(0)
    func content(_ entries: Int, stores: Int = 1) throws -> WordContent {
      var all: [StoreIdentifier: WordContent.Store] = [:]
      for number in 0..<stores {
        let store = try #require(StoreIdentifier("s\(number)"))
        let chains = (0..<entries).map {
          ChainID(device: device, incarnation: Incarnation(rawValue: UInt64($0)))
        }
        let latest = Dictionary(uniqueKeysWithValues: chains.map { ($0, 1 as UInt64) })
        all[store] = WordContent.Store(digest: WordContent.digest(of: [:]), latest: latest)
      }
      return WordContent(all)
    }
    let most = Limits.wordEntries
    for (entries, stores, isTaken) in [
      (most, 1, true), (most + 1, 1, false), (1, most, true), (1, most + 1, false),
      (0, Limits.stores, true), (0, Limits.stores + 1, false),
    ] {
      #expect((WordContent(try content(entries, stores: stores).body) != nil) == isTaken)
    }
    // A field that no version knows: it decodes, and is passed on byte for byte.
    func long(_ count: Int) throws -> [UInt8] {
      let bytes = [UInt8](repeating: 0, count: count)
      return try content(1).body + [0xfa, 0x01, UInt8(count & 0x7f) | 0x80]
        + [UInt8(count >> 7 & 0x7f) | 0x80, UInt8(count >> 14)] + bytes
    }
    #expect(WordContent(try long(Limits.wordBytes / 2)) != nil)
    #expect(WordContent(try long(Limits.wordBytes)) == nil)
    let one = Word(
      try content(1), version: Word.Version(number: 1, process: 1), account: world.account,
      keys: world.devices[0].keys)
    func message(of count: Int) -> [UInt8] {
      var message = WireMessage()
      var group = WordGroup.groups(of: [one])[0]
      group.said = (0..<count).map { number in
        var said = group.said[0]
        said.device = UInt64(number)
        return said
      }
      message.have.words = [group.wire]
      return message.encodedBytes()
    }
    for (count, isTaken) in [(Limits.wordsPerMessage, true), (Limits.wordsPerMessage + 1, false)] {
      let decoded = InboundMessage(decoding: message(of: count), account: world.account)
      #expect((decoded != nil) == isTaken)
    }
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
      part, size: Limits.batchBytes, within: nil)
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
