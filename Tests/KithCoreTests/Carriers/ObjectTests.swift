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
    for kind in [ObjectName.Kind.parcel, .handover] {
      let name = fixture.name(kind)
      #expect(name.origin(among: [fixture.epoch])?.kind == kind)
      #expect(ObjectName(name.description) == name)
    }
    let other = EpochKeys(secret: EpochSecret(random: &fixture.entropy), generation: 2)
    let strange = ObjectName(.parcel, of: other, entropy: &fixture.entropy)
    #expect(strange.origin(among: [fixture.epoch]) == nil)
    #expect(ObjectName(fixture.name().description.uppercased()) == nil)
    #expect(ObjectName("name") == nil)
  }

  @Test mutating func `a parcel comes back as it was put`() throws {
    let chain = fixture.chain(fixture.creator)
    var parcel = fixture.parcel(above: [chain: 1], through: [chain: 3])
    parcel.replaces = [fixture.name(), fixture.name()].sorted()
    parcel.rosterDigest = fixture.roster.digest
    let decoded = try #require(Parcel.decode(parcel.encoded(), account: fixture.account))
    #expect(decoded.parcel.stores == parcel.stores)
    #expect(decoded.parcel.replaces == parcel.replaces)
    #expect(decoded.parcel.rosterDigest == parcel.rosterDigest)
    #expect(decoded.parcel.part == parcel.part)
    #expect(decoded.content.isEmpty)
  }

  @Test func `cut and altered parcels are refused or differ`() {
    let bytes = fixture.parcel(through: [fixture.chain(fixture.creator): 3]).encoded()
    for count in 0..<bytes.count {
      let cut = Parcel.decode(Array(bytes.prefix(count)), account: fixture.account)
      #expect(cut?.parcel.encoded() != bytes)
    }
    #expect(Parcel.decode([0xFF, 0x07], account: fixture.account) == nil)
  }

  @Test func `a sequence counts up to a header inside`() {
    let chain = fixture.chain(fixture.creator)
    let parcel = fixture.parcel(above: [chain: 2], through: [chain: 1_000])
    #expect(parcel.bounded(by: [], after: []).stores[0].have.vector == [chain: 2])
  }

  @Test mutating func `a parcel opens for members, under its name, and unaltered`() throws {
    let name = fixture.name()
    let parcel = fixture.parcel(through: [:])
    let sealed = SealedObject.seal(
      parcel.encoded(), named: name, under: fixture.epoch, in: fixture.account,
      by: fixture.creator, nonce: fixture.entropy.draw())
    let opener = ObjectOpener(
      account: fixture.account, keys: fixture.creator, epochs: fixture.keyring.newestFirst)
    #expect(opener.open(sealed, named: name).facts?.author == fixture.creator.id)
    #expect(opener.open(sealed, named: fixture.name()).facts == nil)
    var altered = sealed
    altered[100] ^= 1
    #expect(opener.open(altered, named: name).facts == nil)
    #expect(opener.open(Array(sealed.dropLast()), named: name).facts == nil)
    let stranger = ObjectOpener(account: fixture.account, keys: fixture.second, epochs: [])
    #expect(stranger.open(sealed, named: name).facts == nil)
  }

  @Test mutating func `a handover opens for its recipients only`() throws {
    let name = fixture.name(.handover)
    let newest = EpochKeys(secret: EpochSecret(random: &fixture.entropy), generation: 2)
    let box = newest.sealed(to: fixture.second.boxPublicKey, entropy: &fixture.entropy)
    let inner = SealedObject.seal(
      fixture.parcel(through: [:]).encoded(), named: name, under: newest, in: fixture.account,
      by: fixture.creator, nonce: fixture.entropy.draw())
    let sealed = Handover(to: newest.id, boxes: [try #require(box)], parcel: inner)
      .sealed(under: fixture.epoch, nonce: fixture.entropy.draw())
    func open(_ keys: DeviceKeys) -> OpenedObject.Content {
      ObjectOpener(account: fixture.account, keys: keys, epochs: [fixture.epoch])
        .open(sealed, named: name).content
    }
    guard case .handover(let parcel, _, let to) = open(fixture.second) else {
      Issue.record("it does not open")
      return
    }
    #expect(parcel.author == fixture.creator.id)
    #expect(to == newest.id)
    // A device that was revoked has the older epoch, and no box.
    guard case .unreadable = open(deviceKeys(3)) else {
      Issue.record("it opens for a revoked device")
      return
    }
  }
}
