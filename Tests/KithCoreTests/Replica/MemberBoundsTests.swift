import KithCrypto
import Testing

@testable import KithCore

/// What a member can press a node with, message by message all valid, is bounded
/// (`Docs/Testing.md`, "The promises",
/// promise 8).
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

  @Test func `statements are kept up to a bound, and those that are kept can still be renewed`()
    throws
  {
    let keys = deviceKeys(1)
    let account = try Fixture().account
    func statement(_ number: Int, clock: UInt64) throws -> Statement {
      let store = try #require(StoreIdentifier("com.example.S\(number)"))
      // The table trusts who checked the signature, and these have none: making many takes time.
      var wire = WireStatement()
      var body = WireStatementBody()
      body.device = .init(keys.id.bytes)
      body.store = store.rawValue
      body.clock = HybridTime(milliseconds: clock).rawValue
      body.vectorDigest = .init(account.bytes)
      wire.body = .init(body.encodedBytes())
      wire.signature = .init([UInt8](repeating: 0, count: Signature.byteCount))
      return try #require(Statement(wire))
    }
    var table = StatementTable()
    for number in 0..<Limits.statements {
      let isTaken = table.insert(try statement(number, clock: 1))
      #expect(isTaken)
    }
    var isTaken = table.insert(try statement(Limits.statements, clock: 1))
    #expect(!isTaken && table.count == Limits.statements)
    let renewed = try statement(0, clock: 2)
    isTaken = table.insert(renewed)
    #expect(isTaken && table.count == Limits.statements)
    #expect(table[renewed.store, keys.id] == renewed)
    table.keep { _ in false }
    #expect(table.count == 0)
    isTaken = table.insert(try statement(Limits.statements, clock: 1))
    #expect(isTaken)
  }

  @Test func `a statement is short, and a message holds so many`() throws {
    let world = try TestWorld(devices: 1, seed: 261)
    let chain = try world.chain(of: 0)
    func statement(_ entries: Int, of store: StoreIdentifier = TestWorld.store) -> Statement {
      Statement(
        store, clock: HybridTime(milliseconds: 1), process: 1,
        vectorDigest: Statement.digest(of: [:]),
        risen: Dictionary(
          uniqueKeysWithValues: (0..<UInt64(entries)).map {
            (ChainID(device: chain.device, incarnation: Incarnation(rawValue: $0)), 1)
          }), account: world.account, keys: world.devices[0].keys)
    }
    #expect(Statement(statement(Limits.statementEntries).wire) != nil)
    #expect(Statement(statement(Limits.statementEntries + 1).wire) == nil)
    var long = statement(1).wire
    // A field that no version knows: it decodes, and is passed on byte for byte.
    long.body += [0xfa, 0x01, 0x80, 0x10] + [UInt8](repeating: 0, count: 2_048)
    #expect(Statement(long) == nil)
    let statements = try (0...Limits.statementsPerMessage).map { number in
      statement(1, of: try #require(StoreIdentifier("com.example.S\(number)"))).wire
    }
    func message(of count: Int) -> [UInt8] {
      var message = WireMessage()
      message.have.number = 1
      message.have.statements = Array(statements.prefix(count))
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
    func hand() throws {
      let bytes = message.encodedBytes()
      world.perform(
        .received(session, try #require(InboundMessage(decoding: bytes, account: world.account))),
        on: 1)
    }
    try hand()
    #expect(world.devices[1].replica.sessions[session]?.partial != nil)
    // As if so many bytes had come: they would be 128 MiB.
    world.devices[1].replica.sessions[session]?.partialBytes = Limits.batchBytes
    try hand()
    #expect(world.devices[1].replica.sessions[session] == nil)
    #expect(world.devices[1].closed.last == .protocolViolation)
  }

  @Test func `who cannot judge something is sent all records again, three times at most`() throws {
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
