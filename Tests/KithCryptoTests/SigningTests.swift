import KithCrypto
import Testing

@Suite("Ed25519 signatures")
struct SigningTests {
  @Test(
    "RFC 8032, section 7.1",
    arguments: [
      (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
      ),
      (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
      ),
      (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
      ),
    ])
  func knownAnswers(_ seed: String, _ publicKey: String, _ message: String, _ signature: String) {
    let key = SigningKey(seed: key(hex(seed)))
    let signed = key.sign(hex(message))
    let isValid = key.publicKey.isValid(signed, for: hex(message))
    #expect(key.publicKey.bytes == hex(publicKey))
    #expect(signed.bytes == hex(signature))
    #expect(isValid)
  }

  @Test("Every altered bit of a signature, and another message or key, is refused")
  func tampering() throws {
    let key = SigningKey(seed: key(seedBytes))
    let other = SigningKey(seed: KithCryptoTests.key(otherSeedBytes))
    let message = [UInt8]("a change set".utf8)
    let signature = key.sign(message)
    let publicKey = key.publicKey
    for bit in 0..<512 {
      var bytes = signature.bytes
      bytes[bit / 8] ^= 1 << (bit % 8)
      #expect(!publicKey.isValid(try Signature(bytes), for: message))
    }
    #expect(!publicKey.isValid(signature, for: message + [0]))
    #expect(!publicKey.isValid(signature, for: Array(message.dropLast())))
    #expect(!publicKey.isValid(signature, for: []))
    let otherKey = other.publicKey
    #expect(!otherKey.isValid(signature, for: message))
  }

  @Test("A public key of low order verifies nothing")
  func lowOrderKey() throws {
    // The identity and a point of order 8: with R of low order and S zero, a verifier that does
    // not look would accept.
    for point in [
      "0100000000000000000000000000000000000000000000000000000000000000",
      "0000000000000000000000000000000000000000000000000000000000000000",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ] {
      let key = try SigningPublicKey(hex(point))
      let signature = try Signature(hex(point) + [UInt8](repeating: 0, count: 32))
      #expect(!key.isValid(signature, for: [1, 2, 3]))
    }
  }
}
