import KithCrypto
import Testing

/// Known answers here were made with Python's hashlib.
@Suite("BLAKE2b and key derivation")
struct HashingTests {
  @Test("BLAKE2b-256, in one piece and in several")
  func digest() {
    let abc = "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319"
    #expect(Blake2b.digest256([UInt8]("abc".utf8)).hex == abc)
    #expect(Blake2b.digest256([97], [], [98, 99]).hex == abc)
    #expect(Blake2b.digest256([0, 97, 98, 99][1...]).hex == abc)
    #expect(
      Blake2b.digest256().hex == "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8")
    var hasher = Blake2b.Hasher()
    hasher.update([97])
    let early = hasher.digest256()
    hasher.update([98, 99][...])
    #expect(hasher.digest256().hex == abc)
    #expect(early == Blake2b.digest256([97]))
  }

  @Test("Pieces of any size give one digest")
  func pieces() {
    var entropy = SeededEntropy(seed: 1)
    let bytes = entropy.bytes(1_000)
    let whole = Blake2b.digest256(bytes)
    for size in [1, 7, 127, 128, 129, 256, 999] {
      var hasher = Blake2b.Hasher()
      for start in stride(from: 0, to: bytes.count, by: size) {
        hasher.update(bytes[start..<min(start + size, bytes.count)])
      }
      #expect(hasher.digest256() == whole)
    }
  }

  @Test("BLAKE2b-128 under a key")
  func keyed() {
    let message = [UInt8]("com.example.Bookmarks".utf8)
    let tagKey: StoreTagKey = key(seedBytes)
    let digest = Blake2b.keyed128(message, key: tagKey)
    let other = Blake2b.keyed128(message, key: key(otherSeedBytes, as: StoreTagKey.self))
    #expect(digest.hex == "593ee4c614d088eb8a5be942c520710b")
    #expect(other != digest)
  }

  @Test("crypto_kdf is BLAKE2b with salt and personal bytes")
  func derivation() {
    let master: EpochSecret = key(seedBytes)
    let box: BoxSeed = KeyDerivation.derive(1, context: "KithEpo1", from: master)
    let beacon: BeaconKey = KeyDerivation.derive(4, context: "KithEpo1", from: master)
    let boxIsKnown = box.isSame(
      as: key(hex("955118215b0bc404025aa654a6b3435df31bc218365f177447ab880573392e94")))
    let beaconIsKnown = beacon.isSame(
      as: key(hex("c1567e7f754e6fe3b7953c0d570e7f24aeacf2eff64b0be740215f6a9e2fbb25")))
    #expect(boxIsKnown)
    #expect(beaconIsKnown)
  }
}
