import KithCrypto
import Testing

@testable import KithCore

/// How a device judges the objects and parts of a carrier, by what it covers and whom it knows.
struct CarrierReaderTests {
  let fixture: CarrierFixture
  let mine: ChainID
  let theirs: ChainID

  init() throws {
    fixture = try CarrierFixture()
    (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
  }

  /// The creator, which covers its chain through 3.
  private var reader: CarrierReader { fixture.reader([mine: 3]) }

  private var bounds: BatchBounds {
    BatchBounds(own: mine.device, roster: fixture.roster, authorBytes: .max, elsewhereBytes: 0)
  }

  private func words(_ outcome: (batch: Batch, taint: Taint)?) -> String {
    guard let batch = outcome?.batch else { return "disorder" }
    return "\(batch.isEverything ? "everything " : "")\(batch.changeSets.map(\.header.sequence)), "
      + "covers \(batch.covers.count)"
  }

  @Test func `an object is ready, waits, is foreign, or is void`() {
    let time = LinkFixture.time
    let reader = fixture.reader([mine: 3], at: time)
    let cases: [(String, DeviceKeys, ahead: UInt64, CarrierReader.OnObject)] = [
      ("in time", fixture.creator, 0, .ready),
      ("two minutes ahead", fixture.creator, 120_000, .ready),
      ("more than two minutes ahead", fixture.creator, 120_001, .waits),
      ("a stranger's", deviceKeys(4), 0, .foreign),
      ("a stranger's, early", deviceKeys(4), 120_001, .foreign),
      ("a revoked device's", fixture.revoked, 120_001, .void),
    ]
    for (name, keys, ahead, verdict) in cases {
      let body = fixture.body(by: keys, through: [:])
      #expect(
        reader.judge(body, published: HybridTime(milliseconds: time + ahead)) == verdict, "\(name)")
    }
  }

  @Test func `a part waits until all that it is above is covered`() {
    let (gone, refused) = (fixture.chain(fixture.revoked), fixture.chain(deviceKeys(5)))
    let reader = fixture.reader([mine: 3], refused: [refused.device])
    let cases: [(String, [ChainID: UInt64], isReady: Bool)] = [
      ("above nothing", [:], true), ("above what is covered", [mine: 3], true),
      ("above more of a chain", [mine: 4], false), ("above an unknown chain", [theirs: 1], false),
      ("one of two chains", [mine: 3, theirs: 1], false),
      ("above a revoked device's", [gone: 9], true),
      ("above a refused author's", [refused: 9], true),
    ]
    for (name, above, isReady) in cases {
      let part = fixture.part(fixture.store, above: above, through: above)
      #expect(reader.isReady(part) == isReady, "\(name)")
      var limits = part
      limits.have.policy.keys -= 1
      #expect(reader.isReady(limits), "\(name)")
    }
    let other = fixture.part(TestWorld.store, above: [mine: 1], through: [mine: 1])
    #expect(!reader.isReady(other))
  }

  /// A reader that lacks one side of a fork may read the other before its vector is the object's.
  @Test func `a part is a repair or odd by its vector and digest`() {
    let (other, void) = (fixture.chain(fixture.second), fixture.chain(fixture.revoked))
    let (digest, another) = (CarrierFixture.digest, Blake2b.digest256([2]))
    let reader = fixture.reader([mine: 3])
    let cases: [(String, [ChainID: UInt64], Digest256?, isRepair: Bool, isOdd: Bool)] = [
      ("the same vector and digest", [mine: 3], digest, false, false),
      ("another digest", [mine: 3], another, true, true),
      ("no digest", [mine: 3], nil, false, false),
      ("a later vector", [mine: 4], another, true, false),
      ("more chains", [mine: 3, other: 1], another, true, false),
      ("an earlier vector", [mine: 2], another, false, false),
      ("earlier in one chain", [mine: 2, other: 1], another, false, false),
      ("a revoked device's chain", [mine: 3, void: 1], another, false, false),
    ]
    for (name, through, digest, isRepair, isOdd) in cases {
      let part = fixture.part(fixture.store, through: through, digest: digest)
      #expect(reader.isRepair(part) == isRepair, "\(name)")
      #expect(reader.isOdd(part) == isOdd, "\(name)")
    }
    // Else a liar would make all devices put nothing, at each turn and for ever.
    let nothing = fixture.part(fixture.store, through: [:], digest: another)
    #expect(!fixture.reader([:]).isOdd(nothing))
    // Its state must differ from that of a device that keeps what this one refuses.
    let refusing = fixture.reader([mine: 3], refused: [other.device])
    let more = fixture.part(fixture.store, through: [mine: 3, other: 1], digest: another)
    #expect(!refusing.isOdd(more))
  }

  /// The reader covers its own chain through 3; the object has change sets 3 and 4 of it.
  @Test func `of a part, what is covered is left out, but not of a repair`() throws {
    let another = Blake2b.digest256([2])
    let gone = fixture.chain(fixture.revoked)
    typealias Case = (
      name: String, above: [ChainID: UInt64], digest: Digest256?,
      change: (inout ObjectBody) -> Void, opens: String
    )
    let cases: [Case] = [
      ("an answer", [mine: 3], nil, { _ in }, "[4], covers 1"),
      ("a piece", [mine: 3], nil, { $0.isPiece = true }, "[4], covers 0"),
      ("from nothing", [:], CarrierFixture.digest, { _ in }, "[4], covers 1"),
      ("a repair", [:], another, { _ in }, "everything [3, 4], covers 1"),
      ("not from nothing", [mine: 3], another, { _ in }, "[4], covers 1"),
      (
        "its author did not know a revocation", [mine: 3], nil,
        { $0.parts[0].have.vector[gone] = 1 }, "[4], covers 0"
      ),
    ]
    var sealing = fixture
    let batch = Batch(
      store: fixture.store, changeSets: try [3, 4].map { try sealing.changeSet($0) })
    let messages = batch.messages().compactMap {
      InboundMessage(decoding: $0, account: fixture.account)
    }
    for (name, above, digest, change, opens) in cases {
      var body = fixture.body(above: above, through: [mine: 4], digest: digest)
      change(&body)
      let outcome = reader.batch(of: body.parts[0], in: body, messages, within: bounds)
      #expect(words(outcome) == opens, "\(name)")
    }
    let body = fixture.body(above: [mine: 3], through: [mine: 4])
    #expect(
      words(reader.batch(of: body.parts[0], in: body, [], within: bounds)) == "[], covers 1")
    let incomplete = reader.batch(
      of: body.parts[0], in: body, messages, within: bounds, isComplete: false)
    #expect(words(incomplete) == "[4], covers 0")
  }

  @Test func `a part with more bytes than a batch may have cannot be judged`() throws {
    let bytes = 5 << 20
    var sealing = fixture
    let batch = Batch(
      store: fixture.store,
      changeSets: try [3, 4].map { try sealing.changeSet($0, bytes: bytes) })
    let first = try #require(batch.messages().first)
    let message = try #require(InboundMessage(decoding: first, account: fixture.account))
    let body = fixture.body(above: [mine: 2], through: [mine: 4])
    func open(_ count: Int) -> String {
      let messages = Array(repeating: message, count: count)
      return words(reader.batch(of: body.parts[0], in: body, messages, within: bounds))
    }
    #expect(open(Limits.batchBytes / message.size) != "disorder")
    #expect(open(Limits.batchBytes / message.size + 1) == "disorder")
  }
}
