import Foundation
import KithCrypto
import Testing

@testable import KithCore

/// The worked examples of Docs/Protocol.md and its sub-pages, made by this code.
/// Docs/Protocol-examples.py makes the same without any of it.
@Suite struct ProtocolExamplesTests {
  /// Draws one byte repeated.
  private struct Repeated: Entropy {
    var byte: UInt8
    mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
      buffer.initializeMemory(as: UInt8.self, repeating: byte)
    }
  }

  private static func keys(_ signing: UInt8, _ box: UInt8, _ transport: UInt8) -> DeviceKeys {
    var (first, second, third) = (
      Repeated(byte: signing), Repeated(byte: box), Repeated(byte: transport)
    )
    return DeviceKeys(
      signingSeed: SigningSeed(random: &first), boxSeed: BoxSeed(random: &second),
      transport: TransportPrivateKey(random: &third))
  }

  private let pages: ProtocolPages
  private let laptop = Self.keys(1, 2, 3)
  private let phone = Self.keys(0x11, 0x12, 0x13)
  private let recovery: RecoveryKey
  private let epoch: EpochKeys
  private let genesis: Record
  private let account: AccountID
  private let store: StoreIdentifier
  private let chain: ChainID
  private static let issued: UInt64 = 1_700_000_000_000

  init() throws {
    pages = try ProtocolPages()
    var entropy = Repeated(byte: 4)
    recovery = RecoveryKey(entropy: &entropy)
    entropy.byte = 5
    epoch = EpochKeys(secret: EpochSecret(random: &entropy), generation: 1)
    let body = RecordBody.encode(
      Genesis(
        recoverySigningKey: recovery.signingPublicKey, recoveryBoxKey: recovery.boxPublicKey,
        firstDevice: try #require(
          Certificate(of: laptop, name: "laptop", issued: Self.issued))))
    let unsigned = try Record(body: body, signatures: [])
    account = AccountID(unsigned.id)
    genesis = unsigned.signed(by: laptop.signing, account: account)
      .signed(by: recovery.signing, account: account)
    store = try #require(StoreIdentifier("com.example.App"))
    chain = ChainID(
      device: laptop.id, incarnation: Incarnation(rawValue: 0x1122_3344_5566_7788))
  }

  private func expect(_ bytes: some Sequence<UInt8>, _ label: String, in title: String) throws {
    let text = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    #expect(text == (try pages.text(title, label)), "\(title), \(label)")
  }

  /// So many readings after the examples' clock.
  private func clock(_ after: UInt64) -> HybridTime {
    HybridTime(rawValue: HybridTime(milliseconds: Self.issued).rawValue + after)
  }

  private func stamp(_ after: UInt64, _ keys: DeviceKeys? = nil) -> Stamp {
    Stamp(clock: clock(after), device: (keys ?? laptop).id)
  }

  private func claim(_ after: UInt64, _ keys: DeviceKeys? = nil) -> Claim {
    Claim(clock: clock(after), device: (keys ?? laptop).id, group: 0)
  }

  private func kept(_ entry: Entry) -> KeptEntry {
    KeptEntry(entry: entry, digest: Blake2b.digest256(entry.plaintext()), location: nil)
  }

  private func dark() throws -> Entry {
    Entry(
      key: "theme", stamp: stamp(0), content: .value(try EncodedValue("dark")), claim: claim(1))
  }

  private func changeSet() throws -> ChangeSet {
    let sealer = Sealer(
      box: try SharedBox(laptop.box, with: epoch.box.publicKey),
      storeTag: epoch.storeTag(of: store), epoch: epoch.id, chain: chain, account: account,
      keys: laptop)
    return sealer.seal(
      [try dark().plaintext()], sequence: 1, clock: clock(1),
      noncePrefix: try NoncePrefix([UInt8](0..<20)))
  }

  @Test func values() throws {
    let title = "values"
    try expect(EncodedValue(false).bytes, "bool(false)", in: title)
    try expect(EncodedValue(-3).bytes, "integer(-3)", in: title)
    try expect(EncodedValue(1.5).bytes, "double(1.5)", in: title)
    try expect(EncodedValue("").bytes, #"string("")"#, in: title)
    try expect(
      EncodedValue(.date(Date(timeIntervalSinceReferenceDate: 1))).bytes, "date, 1 s after 2001",
      in: title)
    try expect(
      EncodedValue(.dictionary(["b": .array([1, "x"]), "a": true])).bytes,
      #"{"b": [1, "x"], "a": true}"#, in: title)
  }

  @Test func `genesis and epoch`() throws {
    let title = "genesis and epoch"
    try expect(laptop.id.bytes, "device", in: title)
    try expect(laptop.boxPublicKey.bytes, "box key", in: title)
    try expect(laptop.transportPublicKey.bytes, "transport key", in: title)
    try expect(recovery.signingPublicKey.bytes, "recovery signing key", in: title)
    try expect(recovery.boxPublicKey.bytes, "recovery box key", in: title)
    try expect(genesis.body, "genesis body", in: title)
    try expect(account.bytes, "account", in: title)
    let own = try #require(genesis.signatures.first { $0.signer == laptop.id })
    try expect(own.signature.bytes, "first device's signature", in: title)
    try expect(epoch.box.publicKey.bytes, "epoch box key", in: title)
    try expect(epoch.id.bytes, "epoch", in: title)
    try expect(epoch.psk.withUnsafeBytes { [UInt8]($0) }, "psk", in: title)
    try expect(epoch.storeTag(of: store).bytes, "store tag", in: title)
  }

  @Test func `a roster digest`() throws {
    let title = "a roster digest"
    func sealed(to key: BoxPublicKey, _ byte: UInt8) throws -> [UInt8] {
      var entropy = Repeated(byte: byte)
      return try #require(epoch.sealed(to: key, entropy: &entropy))
    }
    let bodies = [
      RecordBody.encode(
        EpochRecord(
          parents: [], generation: 1, boxPublicKey: epoch.box.publicKey,
          recipients: [
            SealedSecret(device: laptop.id, box: try sealed(to: laptop.boxPublicKey, 0x14))
          ],
          recoverySecret: try sealed(to: recovery.boxPublicKey, 0x15))),
      RecordBody.encode(
        try #require(Certificate(of: phone, name: "phone", issued: Self.issued))),
      RecordBody.encode(
        RenameRecord(device: laptop.id, name: "desk", issued: Self.issued + 1)),
    ]
    var roster = Roster(account: account)
    _ = roster.learn(all: [genesis])
    for (body, label) in zip(bodies, ["epoch's body", "certificate's body", "rename's body"]) {
      try expect(body, label, in: title)
      var record = try Record(body: body, signatures: [])
        .signed(by: laptop.signing, account: account)
      if record.certifies(phone.id) {
        record = record.signed(by: phone.signing, account: account)
      }
      _ = roster.learn(all: [record])
    }
    #expect(roster.isMember(phone.id))
    try expect(roster.digest.bytes, "roster digest", in: title)
  }

  @Test func `a change set`() throws {
    let title = "a change set"
    let (entry, changeSet) = (try dark(), try changeSet())
    try expect(entry.plaintext(), "entry", in: title)
    try expect(Blake2b.digest256(entry.plaintext()).bytes, "entry digest", in: title)
    try expect(try #require(changeSet.stored.entries[0]), "box", in: title)
    try expect(changeSet.stored.header, "header", in: title)
    try expect(changeSet.stored.signature, "signature", in: title)
    var replica = StoreReplica(identifier: store, policy: .standard)
    _ = replica.merge(kept(entry))
    try expect(replica.digest().bytes, "state digest", in: title)
  }

  @Test func `admission with a runner-up and a fallback`() throws {
    let title = "admission with a runner-up and a fallback"
    func text(_ letter: String, _ count: Int) throws -> EncodedValue {
      try EncodedValue(.string(String(repeating: letter, count: count)))
    }
    let first = Entry(
      key: "a", stamp: stamp(1), content: .value(try text("a", 8)), claim: claim(1))
    let other = Entry(
      key: "b", stamp: stamp(2), content: .value(try text("b", 12)), claim: claim(2))
    let fallback = Fallback(value: try text("a", 8), claim: claim(1))
    let runnerUp = Entry(
      key: "a", stamp: stamp(3, phone), content: .value(try text("c", 14)),
      claim: claim(3, phone), replaced: stamp(1), fallback: fallback)
    let newest = Entry(
      key: "a", stamp: stamp(4), content: .value(try text("d", 18)), claim: claim(4),
      replaced: stamp(1), fallback: fallback)
    var replica = StoreReplica(
      identifier: store, policy: Policy(totalBytes: 30))
    for entry in [newest, first, other, runnerUp] { _ = replica.merge(kept(entry)) }
    _ = replica.state.refresh(["a", "b"])
    try expect(Blake2b.digest256(first.plaintext()).bytes, "first a, digest", in: title)
    try expect(Blake2b.digest256(other.plaintext()).bytes, "b, digest", in: title)
    try expect(runnerUp.plaintext(), "runner-up", in: title)
    try expect(newest.plaintext(), "newest", in: title)
    try expect(try #require(replica.state.shown["a"]).value.bytes, "shown of a", in: title)
    try expect(try #require(replica.state.shown["b"]).value.bytes, "shown of b", in: title)
    try expect(replica.digest().bytes, "state digest", in: title)
  }

  @Test func `a draft that a write replaces`() throws {
    var replica = StoreReplica(identifier: store, policy: .standard)
    _ = replica.merge(kept(try dark()))
    _ = replica.state.refresh(["theme"])
    for (text, milliseconds): (PropertyListValue, UInt64) in [("light", 1_000), ("dim", 1_500)] {
      let write = LocalWrite(
        clock: clock(milliseconds << 12), operations: [set("theme", text)])
      #expect(replica.accept(write, author: laptop.id) != nil)
    }
    #expect(replica.drafts.count == 1)
    _ = replica.start(author: laptop.id)
    let draft = try #require(replica.state.drafted["theme"]?.entry)
    try expect(draft.plaintext(), "entry", in: "a draft that a write replaces")
  }

  @Test func `a word`() throws {
    let title = "a word"
    let other = ChainID(device: phone.id, incarnation: Incarnation(rawValue: 0x42))
    let vector = [chain: 1, other: 3] as [ChainID: UInt64]
    let digest = WordContent.digest(of: vector)
    let content = WordContent([store: WordContent.Store(digest: digest, latest: vector)])
    let process = ProcessID(Digest128 { $0.copyBytes(from: [UInt8](repeating: 0x0b, count: 16)) })
    let version = Word.Version(number: 1_800_000_000_000, process: process.shortName)
    let word = Word(content, version: version, account: account, keys: laptop)
    #expect(word.isSigned(in: account))
    try expect(digest.bytes, "vector digest", in: title)
    try expect(content.body, "content", in: title)
    try expect(word.signature.bytes, "signature", in: title)
    var coverage = Coverage(account: account, keys: laptop, process: process)
    coverage.setMembers([laptop.id])
    let groups = WordGroup.groups(of: [word])
    let isSound = coverage.receive(groups, at: 0, with: nil)
    #expect(isSound)
    try expect(coverage.digest.bytes, "digest of the words kept", in: title)
    try expect(
      Have.messages(of: groups, time: ClockReading(reading: clock(0), isSynchronised: true))[0],
      "message", in: title)
  }

  @Test func `an answer with covers`() throws {
    let other = ChainID(device: phone.id, incarnation: Incarnation(rawValue: 0x42))
    let batch = Batch(
      store: store, answers: 1, changeSets: [try changeSet()],
      covers: [
        Cover(chain: chain, from: 0, through: 1), Cover(chain: other, from: 2, through: 3),
      ].sorted { $0.chain < $1.chain })
    let messages = batch.messages()
    #expect(messages.count == 1)
    try expect(messages[0], "message", in: "an answer with covers")
    #expect(InboundMessage(decoding: messages[0], account: account) != nil)
  }

  @Test func `objects on a carrier`() throws {
    let title = "objects on a carrier"
    let carrierKeys = CarrierKeys(recovery: recovery.boxPublicKey)
    #expect(try carrierKeys.place == pages.text(title, "place"))
    try expect(carrierKeys.names.withUnsafeBytes { Array($0) }, "name key", in: title)
    try expect(carrierKeys.outer.withUnsafeBytes { Array($0) }, "outer key", in: title)
    try expect(epoch.carrierKey.withUnsafeBytes { Array($0) }, "carrier key", in: title)
    var entropy: any Entropy = Repeated(byte: 0x16)
    let name = ObjectName(of: carrierKeys, entropy: &entropy)
    try expect(name.bytes, "name", in: title)
    var replica = StoreReplica(identifier: store, policy: .standard)
    _ = replica.merge(kept(try dark()))
    let have = StoreHave(
      store: store, vector: [chain: 1], digest: replica.digest(), policy: .standard)
    var body = ObjectBody(by: laptop.id, at: clock(3), under: epoch.id)
    body.parts = [ObjectBody.Part(have: have, above: [:])]
    body.time = ClockReading(reading: clock(0), isSynchronised: true)
    let bytes = body.encoded(
      with: Batch(store: store, changeSets: [try changeSet()]).messages())
    try expect(bytes, "body", in: title)
    let signed = SealedObject.signedBytes(bytes, name, epoch.id, account, [])
    try expect(laptop.signing.sign(signed).bytes, "signature", in: title)
    let object = SealedObject.seal(
      bytes,
      SealedObject.Seal(
        name: name, account: account, carrierKeys: carrierKeys, keys: laptop, epoch: epoch,
        nonces: (entropy.draw(), entropy.draw())))
    #expect(try String(object.count) == pages.text(title, "size of the object"))
    for (size, text) in [(4_097, "4,097"), (100_000, "100,000"), (5_000_000, "5,000,000")] {
      #expect(
        try String(SealedObject.paddedSize(size)) == pages.text(title, "size of \(text) bytes"))
    }
    let opener = ObjectOpener(
      account: account, carrierKeys: carrierKeys, keys: laptop, epochs: [epoch],
      entries: EntryOpener(roster: Roster(account: account), keyring: Keyring()))
    guard case .opened(let opened, _) = opener.open(object, named: name).content else {
      Issue.record("the object does not open")
      return
    }
    #expect(opened == body)
  }

  @Test func `a handshake`() throws {
    let title = "a handshake and a message"
    func hello(_ process: UInt8, _ port: UInt16) throws -> [UInt8] {
      Hello(
        version: 1, clock: clock(0), isSynchronised: true,
        process: ProcessID(try Digest128([UInt8](repeating: process, count: 16))),
        rosterDigest: try Digest256([UInt8](repeating: 10, count: 32)), port: port
      ).encoded()
    }
    func side(
      _ role: HandshakeRole, _ keys: DeviceKeys, _ ephemeral: UInt8
    ) throws -> HandshakeState {
      var entropy = Repeated(byte: ephemeral)
      return try HandshakeState(
        protocol: NoiseProtocol("Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"), role: role,
        prologue: Array("Kith/1".utf8), staticKey: keys.transport,
        ephemeral: TransportPrivateKey(random: &entropy), psk: epoch.psk)
    }
    func frame(_ message: [UInt8]) -> [UInt8] {
      [UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    }
    let offer = Offer.current.encoded()
    let hellos = [try hello(11, 4114), try hello(12, 0)]
    try expect(offer, "offer", in: title)
    try expect(hellos[0], "listener's hello", in: title)
    try expect(hellos[1], "dialler's hello", in: title)
    var dialler = try side(.initiator, laptop, 6)
    var listener = try side(.responder, Self.keys(1, 2, 7), 8)
    let first = try dialler.writeMessage(payload: offer)
    let (readOffer, readHello, readOther): ([UInt8], [UInt8], [UInt8])
    readOffer = try listener.readMessage(first)
    let second = try listener.writeMessage(payload: hellos[0])
    readHello = try dialler.readMessage(second)
    let third = try dialler.writeMessage(payload: hellos[1])
    readOther = try listener.readMessage(third)
    #expect([readOffer, readHello, readOther] == [offer] + hellos)
    try expect(frame(first), "frame 1", in: title)
    try expect(frame(second), "frame 2", in: title)
    try expect(frame(third), "frame 3", in: title)
    try expect(dialler.handshakeHash, "handshake hash", in: title)
    let message = try #require(
      Have(
        number: 1, isWhole: true, listsAll: true, stores: [],
        time: ClockReading(reading: clock(0), isSynchronised: true)
      ).messages().first)
    try expect(message, "message", in: title)
    let plaintext = [0, 0, 0, UInt8(message.count)] + message
    let padded = plaintext + [UInt8](repeating: 0, count: 64 - plaintext.count)
    try expect(padded, "plaintext", in: title)
    var ciphers = try dialler.split()
    try expect(frame(try ciphers.send.encrypt(padded)), "frame", in: title)
  }

  @Test func texts() throws {
    let title = "texts"
    #expect(Fingerprint(of: laptop.id).description == (try pages.text(title, "fingerprint")))
    #expect(recovery.text == (try pages.text(title, "recovery key")))
    var entropy = Repeated(byte: 9)
    let token = try InvitationToken(
      secret: InvitationSecret(random: &entropy), port: 4115,
      addresses: ["192.0.2.1"])
    #expect(token.text == (try pages.text(title, "invitation")))
    try expect(token.presharedKey().withUnsafeBytes { [UInt8]($0) }, "pairing psk", in: title)
  }
}
