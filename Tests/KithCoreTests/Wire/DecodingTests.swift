import Foundation
import KithCrypto
import Testing

@testable import KithCore

/// Every wrong length, number or order in a message makes it malformed: Docs/Protocol.md, section 2.
@Suite struct DecodingTests {
  /// A message that is well formed, and holds one or two of everything.
  private struct Sample {
    let world: TestWorld
    var message = WireMessage()

    func isTaken(_ alter: (inout WireMessage) -> Void) -> Bool {
      var message = message
      alter(&message)
      return InboundMessage(decoding: message.encodedBytes(), account: world.account) != nil
    }
  }

  private static let twoDevices = [
    [UInt8](repeating: 1, count: 32), [UInt8](repeating: 2, count: 32),
  ]

  private static func vectorEntry(
    _ device: Int, incarnation: UInt64 = 1
  ) -> WireVectorEntry {
    var entry = WireVectorEntry()
    entry.device = .init(twoDevices[device])
    entry.incarnation = incarnation
    entry.sequence = 1
    return entry
  }

  private func batch() throws -> Sample {
    let world = try TestWorld(devices: 2, seed: 220)
    let plaintexts = try ["a", "b"].map { try world.entry($0, on: 0).plaintext() }
    var sample = Sample(world: world)
    sample.message.batch.store = TestWorld.store.rawValue
    sample.message.batch.changeSets = [try world.seal(plaintexts, by: 0, sequence: 1).wire]
    sample.message.batch.covers = Self.twoDevices.map { device in
      var cover = WireCover()
      cover.device = .init(device)
      cover.incarnation = 1
      (cover.from, cover.through) = (3, 4)
      return cover
    }
    return sample
  }

  private func have() throws -> Sample {
    var sample = Sample(world: try TestWorld(devices: 1, seed: 221))
    for name in ["a", "b"] {
      var store = WireStoreHave()
      store.store = name
      store.policy.totalBytes = 10
      store.digest = .init(Self.twoDevices[0])
      store.vector = [Self.vectorEntry(0), Self.vectorEntry(1)]
      sample.message.have.stores.append(store)
    }
    var group = WireWords()
    group.content = .init(Self.content { _ in })
    var said = WireSaid()
    said.number = Word.lastNumber
    said.signature = .init(repeating: 0, count: 64)
    group.said = [said]
    sample.message.have.words = [group]
    sample.message.have.wordsDigest = .init(Self.twoDevices[0].prefix(16))
    return sample
  }

  private static func content(_ alter: (inout WireWordContent) -> Void) -> [UInt8] {
    var content = WireWordContent()
    content.stores = ["a", "b"].map { name in
      var store = WireStoreWord()
      store.store = name
      store.digest = .init(twoDevices[0].prefix(16))
      store.latest = [vectorEntry(0), vectorEntry(1)]
      return store
    }
    alter(&content)
    return content.encodedBytes()
  }

  @Test func `any wrong field makes a batch malformed`() throws {
    let sample = try batch()
    #expect(sample.isTaken { _ in })
    func refuses(_ name: String, _ alter: (inout WireBatch) -> Void) {
      #expect(!sample.isTaken { alter(&$0.batch) }, "\(name)")
    }
    refuses("a store without a name") { $0.store = "" }
    refuses("a cover's device") { $0.covers[0].device.removeLast() }
    refuses("a cover of nothing") { $0.covers[0].from = 4 }
    refuses("a cover that goes back") { $0.covers[0].from = 5 }
    refuses("a cover beyond sequences") { $0.covers[0].through = Limits.sequence + 1 }
    refuses("covers in another order") { $0.covers.reverse() }
    refuses("a chain covered twice") { $0.covers[1].device = $0.covers[0].device }
    refuses("covers that are not in the last part") { $0.more = true }
    refuses("covers before the last piece") { $0.unfinished = true }
    refuses("a signature of 63 bytes") { $0.changeSets[0].signature.removeLast() }
    refuses("a signature of 65 bytes") { $0.changeSets[0].signature.append(0) }
    refuses("no signature") { $0.changeSets[0].signature = .init() }
    refuses("no header") { $0.changeSets[0].header = .init() }
    refuses("half a header") { $0.changeSets[0].header.removeLast() }
    refuses("entries in another order") { $0.changeSets[0].entries.reverse() }
    refuses("an entry twice") { $0.changeSets[0].entries[1].index = 0 }
    refuses("an entry without a digest") { $0.changeSets[0].entries[1].index = 2 }
  }

  @Test func `any wrong field of a signed header makes its batch malformed`() throws {
    let sample = try batch()
    let keys = sample.world.devices[0].keys
    for (name, alter): (String, ((inout WireChangeSetHeader) -> Void)?) in [
      ("nothing", nil),
      ("store tag", { $0.storeTag.removeLast() }),
      ("epoch", { $0.epoch.append(0) }),
      ("device", { $0.device.removeLast() }),
      ("nonce prefix", { $0.noncePrefix.removeLast() }),
      ("a digest", { $0.entryDigests[1].removeLast() }),
      ("sequence 0", { $0.sequence = 0 }),
      ("sequence 2^53 + 1", { $0.sequence = Limits.sequence + 1 }),
      (
        "too many digests",
        {
          $0.entryDigests = .init(
            repeating: $0.entryDigests[0], count: Limits.entriesPerChangeSet + 1)
        }
      ),
    ] {
      let isTaken = sample.isTaken { message in
        guard
          var header = try? WireChangeSetHeader(
            serializedBytes: message.batch.changeSets[0].header)
        else { return }
        alter?(&header)
        let bytes = header.encodedBytes()
        message.batch.changeSets[0].header = .init(bytes)
        message.batch.changeSets[0].signature = .init(
          keys.signing.sign(
            ChangeSetHeader.signedBytes(account: sample.world.account, header: bytes)
          ).bytes)
      }
      #expect(isTaken == (alter == nil), "\(name)")
    }
  }

  @Test func `a header of another format is not judged, whatever else it holds`() throws {
    let sample = try batch()
    #expect(
      sample.isTaken {
        guard
          var header = try? WireChangeSetHeader(
            serializedBytes: $0.batch.changeSets[0].header)
        else { return }
        header.format = 2
        header.storeTag = .init()
        header.sequence = 0
        $0.batch.changeSets[0].header = .init(header.encodedBytes())
      })
  }

  @Test func `an index beyond the digests of another format was taken`() throws {
    let sample = try batch()
    for digests in 0...3 {
      let isTaken = sample.isTaken {
        guard
          var header = try? WireChangeSetHeader(
            serializedBytes: $0.batch.changeSets[0].header)
        else { return }
        header.format = 2
        header.entryDigests = .init(repeating: header.entryDigests[0], count: digests)
        $0.batch.changeSets[0].header = .init(header.encodedBytes())
      }
      // It has entries 0 and 1.
      #expect(isTaken == (digests >= 2), "\(digests) digests")
    }
  }

  @Test func `any wrong field makes a have malformed`() throws {
    let sample = try have()
    #expect(sample.isTaken { _ in })
    func refuses(_ name: String, _ alter: (inout WireHave) -> Void) {
      #expect(!sample.isTaken { alter(&$0.have) }, "\(name)")
    }
    refuses("words that nobody says") { $0.words[0].said = [] }
    refuses("stores in another order") { $0.stores.reverse() }
    refuses("a store twice") { $0.stores[1].store = "a" }
    refuses("a store that is none") { $0.stores[0].store = "\n" }
    refuses("a digest of 31 bytes") { $0.stores[0].digest.removeLast() }
    refuses("a digest of words of 15 bytes") { $0.wordsDigest.removeLast() }
    refuses("a policy of 2^63 bytes") { $0.stores[0].policy.totalBytes = 1 << 63 }
    refuses("a vector in another order") { $0.stores[0].vector.reverse() }
    refuses("a chain twice") { $0.stores[0].vector[1] = $0.stores[0].vector[0] }
    refuses("sequence 0") { $0.stores[0].vector[0].sequence = 0 }
    refuses("sequence 2^53 + 1") { $0.stores[0].vector[0].sequence = Limits.sequence + 1 }
    refuses("a device of 33 bytes") { $0.stores[0].vector[1].device.append(0) }
    refuses("a word's signature") { $0.words[0].said[0].signature.removeLast() }
    refuses("a word's number") { $0.words[0].said[0].number = 1 << 63 }
    refuses("a word's content") { $0.words[0].content.removeLast() }
    refuses("a device's two") { $0.words[0].said.append($0.words[0].said[0]) }
    refuses("a device's two in two groups") { $0.words.append($0.words[0]) }
    func refusesContent(_ name: String, _ alter: (inout WireWordContent) -> Void) {
      refuses("a content's \(name)") { $0.words[0].content = .init(Self.content(alter)) }
    }
    refusesContent("store") { $0.stores[0].store = "" }
    refusesContent("order of stores") { $0.stores.reverse() }
    refusesContent("store twice") { $0.stores[1] = $0.stores[0] }
    refusesContent("digest") { $0.stores[0].digest.removeLast() }
    refusesContent("order of chains") { $0.stores[0].latest.reverse() }
    refusesContent("sequence") { $0.stores[0].latest[0].sequence = 0 }
  }

  /// The last message of a `Have` in parts names all stores, and comes after their vectors.
  @Test func `each message of a large Have says who is below the horizon`() throws {
    let account = try Fixture().account
    let vector = (0..<4_096 as Range<UInt64>).map {
      (ChainID(device: deviceKeys(1).id, incarnation: Incarnation(rawValue: $0)), UInt64(1))
    }
    let stores = try ["a", "b", "c", "d", "e"].map { name in
      var have = StoreHave(
        store: try #require(StoreIdentifier(name)), vector: Dictionary(vector) { old, _ in old },
        digest: nil, policy: .standard)
      have.isBelow = name == "b"
      return have
    }
    let messages = Have(number: 1, isWhole: true, listsAll: true, stores: stores).messages()
    #expect(messages.count > 2)
    for message in messages {
      guard case .have(let have)? = InboundMessage(decoding: message, account: account)?.body else {
        throw BrokenFixture()
      }
      #expect(have.stores.allSatisfy { $0.isBelow == ($0.store.rawValue == "b") })
    }
  }

  @Test func `any wrong field makes addresses malformed`() throws {
    var sample = Sample(world: try TestWorld(devices: 1, seed: 222))
    sample.message.addresses.devices = Self.twoDevices.map { device in
      var entry = WireDeviceAddresses()
      entry.device = .init(device)
      entry.addresses = ["192.0.2.1:4114"]
      return entry
    }
    #expect(sample.isTaken { _ in })
    func refuses(_ name: String, _ alter: (inout WireAddresses) -> Void) {
      #expect(!sample.isTaken { alter(&$0.addresses) }, "\(name)")
      var reply = WireJoinReply()
      reply.addresses = sample.message.addresses.devices
      #expect(JoinReply(decoding: reply.encodedBytes()) != nil)
      var wrong = sample.message.addresses
      alter(&wrong)
      reply.addresses = wrong.devices
      #expect(JoinReply(decoding: reply.encodedBytes()) == nil, "\(name)")
    }
    refuses("a device") { $0.devices[0].device.removeLast() }
    refuses("order") { $0.devices.reverse() }
    refuses("a device twice") { $0.devices[1].device = $0.devices[0].device }
    refuses("nine") { $0.devices[0].addresses = .init(repeating: "h:1", count: 9) }
    refuses("an empty one") { $0.devices[0].addresses = [""] }
    refuses("a long one") { $0.devices[0].addresses = [String(repeating: "h", count: 263)] }
    refuses("a space") { $0.devices[0].addresses = ["a host:1"] }
    refuses("a text that is not ASCII") { $0.devices[0].addresses = ["hôte:1"] }
  }

  @Test func `any wrong field of a record makes its message malformed`() throws {
    let fixture = try Fixture()
    var sample = Sample(world: try TestWorld(devices: 1, seed: 223))
    sample.message.records.records = fixture.records.map(\.wire)
    #expect(sample.message.records.records[0].signatures.count == 2)
    #expect(sample.isTaken { _ in })
    func refuses(_ name: String, _ alter: (inout WireRecord) -> Void) {
      #expect(!sample.isTaken { alter(&$0.records.records[0]) }, "\(name)")
    }
    refuses("no body") { $0.body = .init([0xff]) }
    refuses("half a body") { $0.body.removeLast() }
    refuses("signatures in another order") { $0.signatures.reverse() }
    refuses("a signer twice") { $0.signatures[1] = $0.signatures[0] }
    refuses("a signer of 31 bytes") { $0.signatures[0].signer.removeLast() }
    refuses("a signature of 63 bytes") { $0.signatures[0].signature.removeLast() }
  }

  @Test func `a message without a body is malformed`() throws {
    let world = try TestWorld(devices: 1, seed: 224)
    for bytes: [UInt8] in [[], [0x98, 0x06, 1], [0xff]] {
      #expect(InboundMessage(decoding: bytes, account: world.account) == nil)
    }
  }
}

/// Messages that are refused before they are decoded, by counting alone.
@Suite struct MessageOutlineTests {
  private func varint(_ value: Int) -> [UInt8] {
    var rest = value
    var bytes: [UInt8] = []
    while rest > 0x7f {
      bytes.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    return bytes + [UInt8(rest)]
  }

  /// A field that holds bytes.
  private func field(_ number: Int, _ bytes: [UInt8]) -> [UInt8] {
    varint(number << 3 | 2) + varint(bytes.count) + bytes
  }

  private func fields(_ number: Int, _ bytes: [UInt8], times: Int) -> [UInt8] {
    let one = field(number, bytes)
    return (0..<times).flatMap { _ in one }
  }

  private func isPermitted(_ bytes: [UInt8]) -> Bool { MessageOutline.session.permits(bytes) }

  @Test func `a message of very many elements was built before they were counted`() {
    let vector = [UInt8](repeating: 0, count: 34)
    let many = Limits.elementsPerMessage
    for (body, number, limit) in [
      (1, 1, Limits.recordsPerMessage), (2, 5, Limits.stores),
      (3, 3, Limits.changeSetsPerMessage), (4, 1, MembershipLimits.records),
    ] {
      #expect(isPermitted(field(body, fields(number, [], times: limit))))
      #expect(!isPermitted(field(body, fields(number, [], times: limit + 1))))
    }
    #expect(isPermitted(field(3, fields(4, vector, times: Limits.chainsPerStore))))
    #expect(!isPermitted(field(3, fields(4, vector, times: Limits.chainsPerStore + 1))))
    #expect(!isPermitted(field(3, field(4, []))), "a cover without a device")
    #expect(isPermitted(field(2, field(5, fields(2, vector, times: many)))))
    #expect(!isPermitted(field(2, field(5, fields(2, vector, times: many + 1)))))
    #expect(!isPermitted(field(2, field(5, field(2, [])))), "a vector's entry without a device")
    #expect(isPermitted(field(3, field(3, fields(3, [], times: many)))))
    #expect(!isPermitted(field(3, field(3, fields(3, [], times: many + 1)))))
    #expect(isPermitted(field(4, field(1, fields(2, [], times: many)))))
    #expect(!isPermitted(field(4, field(1, fields(2, [], times: many + 1)))))
  }

  @Test func `elements under several parents are counted together`() {
    // Bodies that come twice are joined, so their elements are, too.
    let half = field(2, fields(5, [], times: Limits.stores / 2 + 1))
    #expect(isPermitted(half))
    #expect(!isPermitted(half + half))
    let entries = field(3, fields(3, [], times: Limits.elementsPerMessage / 2 + 1))
    #expect(isPermitted(field(3, entries)))
    #expect(!isPermitted(field(3, entries + entries)))
  }

  @Test func `bytes that are no fields are refused, and unknown fields passed over`() {
    #expect(isPermitted([]))
    #expect(isPermitted(field(99, [0xff, 0xff])))
    #expect(isPermitted(varint(99 << 3) + [0x80, 0x01]))
    #expect(isPermitted(varint(99 << 3 | 1) + [UInt8](repeating: 0xff, count: 8)))
    #expect(isPermitted(varint(99 << 3 | 5) + [UInt8](repeating: 0xff, count: 4)))
    // In a longer form than need be, a tag is the same tag.
    let long = [0x92, 0x80, 0x00] + varint(258 * 2) + fields(5, [], times: 258)
    #expect(!isPermitted(long))
    for bytes: [UInt8] in [
      [0x80], [0x00, 0x00], [0x08], [0x0a, 0x01], [0x09, 1, 2, 3, 4, 5, 6, 7], [0x0d, 1, 2, 3],
      [0x0e], [0x0f], [0x12, 0x02, 0x2a, 0x01],
      [0x0a] + [UInt8](repeating: 0xff, count: 9) + [0x01],
      [UInt8](repeating: 0xff, count: 11),
    ] {
      #expect(!isPermitted(bytes), "\(bytes)")
    }
  }

  @Test func `no bytes trap`() {
    var random = SeededEntropy(seed: 210)
    for _ in 0..<2_000 {
      let bytes = (0..<Int.random(in: 0..<24, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      _ = isPermitted(field(Int.random(in: 1...4, using: &random), bytes))
      _ = isPermitted(bytes)
    }
  }

  @Test func `a header of very many digests is no header`() throws {
    let world = try TestWorld(devices: 1, seed: 211)
    let header = try world.seal([], by: 0, sequence: 1).stored.header
    let digest = [UInt8](repeating: 1, count: 32)
    let most = header + fields(9, digest, times: Limits.entriesPerChangeSet)
    #expect(throws: Never.self) { try ChangeSetHeader(decoding: most) }
    let tooMany = most + field(9, digest)
    #expect(throws: ChangeSetHeader.Problem.malformed) { try ChangeSetHeader(decoding: tooMany) }
  }
}
