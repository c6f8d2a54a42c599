import KithCrypto
import Testing

@testable import KithCore

struct ObjectTests {
  var fixture: CarrierFixture

  init() throws { fixture = try CarrierFixture() }

  @Test(arguments: [
    (1, 4_096), (4_096, 4_096), (4_097, 4_352), (10_000, 10_240), (1 << 20, 1 << 20),
    (1 << 20 + 1, 1 << 20 + 1 << 15),
  ])
  func `a size is padded to a common one`(size: Int, padded: Int) {
    #expect(SealedObject.paddedSize(size) == padded)
  }

  @Test func `padding adds at most an eighth`() {
    for size in stride(from: 4_096, to: 1 << 22, by: 997) {
      let padded = SealedObject.paddedSize(size)
      #expect(padded >= size && padded <= size + size / 8)
    }
  }

  @Test mutating func `members recognise a name, and a stranger makes none`() throws {
    let (name, keys) = (fixture.name(), fixture.carrierKeys)
    #expect(keys.made(name))
    #expect(ObjectName(name.description) == name)
    let others = CarrierKeys(recovery: fixture.second.boxPublicKey)
    #expect(others.place != keys.place)
    #expect(!keys.made(ObjectName(of: others, entropy: &fixture.entropy)))
    #expect(ObjectName(name.description.uppercased()) == nil)
    #expect(ObjectName("name") == nil)
  }

  @Test mutating func `a body comes back as it was put`() throws {
    let chain = fixture.chain(fixture.creator)
    var body = fixture.body(above: [chain: 1], through: [chain: 3], level: 7)
    body.pieces = [fixture.name(), fixture.name()].sorted()
    body.rosterDigest = fixture.roster.digest
    body.time = ToldTime(reading: .zero, isSynchronised: true)
    let decoded = try #require(
      ObjectBody.decode(body.encoded(), account: fixture.account, epoch: fixture.epoch.id))
    body.time = decoded.body.time
    #expect(decoded.body == body)
    #expect(decoded.content.isEmpty)
    body.level = UInt8(Limits.objectLevels + 1)
    #expect(
      ObjectBody.decode(body.encoded(), account: fixture.account, epoch: fixture.epoch.id) == nil)
  }

  @Test func `cut and altered bodies are refused or differ`() {
    let (account, epoch) = (fixture.account, fixture.epoch.id)
    let bytes = fixture.body(through: [fixture.chain(fixture.creator): 3]).encoded()
    for count in 0..<bytes.count {
      let cut = ObjectBody.decode(Array(bytes.prefix(count)), account: account, epoch: epoch)
      #expect(cut?.body.encoded() != bytes)
    }
    #expect(ObjectBody.decode([0xFF, 0x07], account: account, epoch: epoch) == nil)
  }

  @Test func `a sequence counts up to a header inside`() {
    let chain = fixture.chain(fixture.creator)
    let body = fixture.body(above: [chain: 2], through: [chain: 1_000])
    #expect(body.bounded(by: [], with: []).parts[0].have.vector == [chain: 2])
  }

  @Test(arguments: [(2, false), (3, false), (4, true)] as [(UInt64, Bool)])
  func `an object of this device shows a copy if it says more of its chain than was received`(
    through: UInt64, saysMore: Bool
  ) {
    let chain = fixture.chain(fixture.creator)
    let body = fixture.body(through: [chain: through, fixture.chain(fixture.second): 9])
    #expect(body.saysMore(of: chain) { _ in 3 } == saysMore)
  }

  @Test mutating func `an object opens for members, under its name, and unaltered`() throws {
    let name = fixture.name()
    let seal = SealedObject.Seal(
      name: name, account: fixture.account, carrierKeys: fixture.carrierKeys,
      keys: fixture.creator, epoch: fixture.epoch,
      nonces: (fixture.entropy.draw(), fixture.entropy.draw()))
    let sealed = SealedObject.seal(fixture.body(through: [:]).encoded(), seal)
    #expect(sealed.count == 4_096)
    func opener(_ epochs: [EpochKeys]) -> ObjectOpener {
      ObjectOpener(
        account: fixture.account, carrierKeys: fixture.carrierKeys, keys: fixture.second,
        epochs: epochs)
    }
    let member = opener(fixture.keyring.newestFirst)
    #expect(member.open(sealed, named: name).facts?.author == fixture.creator.id)
    #expect(member.open(sealed, named: fixture.name()).facts == nil)
    var altered = sealed
    altered[100] ^= 1
    #expect(member.open(altered, named: name).facts == nil)
    #expect(member.open(Array(sealed.dropLast()), named: name).facts == nil)
    guard case .foreign = opener([]).open(sealed, named: name).content else {
      throw BrokenFixture()
    }
    // A former member knows the outer layer, and puts other boxes there.
    var outer = try #require(SealedObject.openOuter(sealed, with: fixture.carrierKeys))
    outer.boxes = [[UInt8](repeating: 1, count: SealedSecret.boxBytes)]
    let forged = fixture.carrierKeys.outer.seal(
      outer.epoch.bytes + [0, 1] + outer.boxes[0] + outer.inner, nonce: fixture.entropy.draw())
    #expect(member.open(forged, named: name).facts == nil)
  }
}
