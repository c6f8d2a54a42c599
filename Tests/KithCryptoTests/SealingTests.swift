import KithCrypto
import Testing

/// Known answers here were made with PyNaCl 1.6.2.
@Suite("Boxes")
struct SealingTests {
  let plaintext = [UInt8]("kith known answer".utf8)

  @Test("crypto_box_easy_afternm, both ways")
  func knownBox() throws {
    let mine = BoxKey(seed: key(seedBytes))
    let theirs = BoxKey(seed: key(otherSeedBytes))
    let (minePublic, theirsPublic) = (mine.publicKey, theirs.publicKey)
    #expect(minePublic.hex == "4701d08488451f545a409fb58ae3e58581ca40ac3f7f114698cd71deac73ca01")
    #expect(theirsPublic.hex == "5730800ab340fcb18ce5111eda9d705f91388b41e4544cbd103ba5942db2233e")
    let nonce = BoxNonce(prefix: try NoncePrefix(Array(100..<120)), index: 0x0102)
    #expect(nonce.bytes == Array(100..<120) + [0, 0, 1, 2])
    let sealed = try SharedBox(mine, with: theirsPublic).seal(plaintext, nonce: nonce)
    #expect(sealed == hex("6f150a8c87c5de20565ba19b64e4cdded5256f9937f70e9eee109ee7407ec575e5"))
    let opener = try SharedBox(theirs, with: minePublic)
    #expect(try opener.open(sealed, nonce: nonce) == plaintext)
    #expect(try opener.open(opener.seal([], nonce: nonce), nonce: nonce) == [])
  }

  @Test("An altered, shortened or misplaced box does not open")
  func tamperedBox() throws {
    let mine = BoxKey(seed: key(seedBytes))
    let theirs = BoxKey(seed: key(otherSeedBytes))
    let third = BoxKey(seed: key([UInt8](repeating: 7, count: 32)))
    let box = try SharedBox(mine, with: theirs.publicKey)
    let wrong = try SharedBox(third, with: theirs.publicKey)
    let prefix = try NoncePrefix([UInt8](repeating: 5, count: 20))
    let nonce = BoxNonce(prefix: prefix, index: 0)
    let sealed = box.seal(plaintext, nonce: nonce)
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 1
      #expect(throws: CryptoError.authenticationFailed) { try box.open(altered, nonce: nonce) }
    }
    for count in sealed.indices {
      #expect(throws: CryptoError.authenticationFailed) {
        try box.open(Array(sealed[..<count]), nonce: nonce)
      }
    }
    #expect(throws: CryptoError.authenticationFailed) { try wrong.open(sealed, nonce: nonce) }
    #expect(throws: CryptoError.authenticationFailed) {
      try box.open(sealed, nonce: BoxNonce(prefix: prefix, index: 1))
    }
  }

  @Test("A box key of low order is refused", arguments: lowOrderPoints)
  func lowOrder(_ point: [UInt8]) throws {
    let mine = BoxKey(seed: key(seedBytes))
    let theirs = try BoxPublicKey(point)
    let shared = caught { () throws(CryptoError) in _ = try SharedBox(mine, with: theirs) }
    #expect(shared == .invalidKey)
    let ephemeral: BoxSeed = key(otherSeedBytes)
    let secret: EpochSecret = key(seedBytes)
    let sealed = caught { () throws(CryptoError) in
      _ = try AnonymousBox.seal(secret: secret, to: theirs, ephemeral: ephemeral)
    }
    #expect(sealed == .invalidKey)
  }

  @Test("Anonymous boxes have the format of crypto_box_seal")
  func anonymousBox() throws {
    let mine = BoxKey(seed: key(seedBytes))
    let libsodiums = hex(
      """
      3ac450359e022179030eb6fe1b89c73bc8f0285f8f0b113365150a154bce0179fd0c780c5e523fb9a1718b8d8c8b
      e1c1cd3868c9a7e3d822b88b8fab7dd7e2075ba7285a85ad2c46a148
      """)
    let opened = try AnonymousBox.openSecret(libsodiums, with: mine)
    let openedBytes = opened.withUnsafeBytes { Array($0) }
    #expect(openedBytes == [UInt8]("sealed by libsodium itself".utf8))
    // The known answer's secret is shorter than a key.
    var known = [UInt8]("sealed by a seed".utf8)
    let short = EpochSecret(unchecked: SecretBytes(zeroing: &known))
    let sealed = try AnonymousBox.seal(
      secret: short, to: mine.publicKey, ephemeral: key(otherSeedBytes))
    #expect(
      sealed
        == hex(
          """
          5730800ab340fcb18ce5111eda9d705f91388b41e4544cbd103ba5942db2233e0528a4497ca3cb5d2f485a31
          41d964713779c8028845dbaffee7fcd2e66598bf
          """))
    let secret: EpochSecret = key(seedBytes)
    let sealedSecret = try AnonymousBox.seal(
      secret: secret, to: mine.publicKey, ephemeral: key(otherSeedBytes))
    let openedSecret = try EpochSecret(try AnonymousBox.openSecret(sealedSecret, with: mine))
    let isSame = openedSecret.isSame(as: secret)
    #expect(isSame)
  }

  @Test("An altered or shortened anonymous box does not open")
  func tamperedAnonymousBox() throws {
    let mine = BoxKey(seed: key(seedBytes))
    let other = BoxKey(seed: key(otherSeedBytes))
    let sealed = try AnonymousBox.seal(
      secret: key(seedBytes, as: EpochSecret.self), to: mine.publicKey,
      ephemeral: key([UInt8](repeating: 3, count: 32)))
    var broken = sealed.indices.map { Array(sealed[..<$0]) }
    broken += sealed.indices.map { index in
      var altered = sealed
      altered[index] ^= 0x80
      return altered
    }
    for (index, bytes) in broken.enumerated() {
      let secret = caught { () throws(CryptoError) in
        _ = try AnonymousBox.openSecret(bytes, with: mine)
      }
      #expect(secret == .authenticationFailed, "case \(index)")
    }
    let wrongKey = caught { () throws(CryptoError) in
      _ = try AnonymousBox.openSecret(sealed, with: other)
    }
    #expect(wrongKey == .authenticationFailed)
  }

  @Test("crypto_secretbox_easy, with the nonce before it")
  func storageKey() throws {
    let storage: StorageKey = key(seedBytes)
    let other: StorageKey = key(otherSeedBytes)
    let nonce = try BoxNonce(Array(0..<24))
    let sealed = storage.seal(plaintext, nonce: nonce)
    #expect(
      sealed
        == nonce.bytes
        + hex("3b8032a3920dfcb5ec8eb2cf532c0e4935964c27e7a1cc7fcc52af5f06fc3df220"))
    let opened = try storage.open(sealed)
    #expect(opened == plaintext)
    let secret = SecretBytes(count: 5) { $0.copyBytes(from: [1, 2, 3, 4, 5]) }
    let sealedSecret = storage.seal(secret: secret, nonce: nonce)
    let plainSecret = storage.seal([1, 2, 3, 4, 5], nonce: nonce)
    let openedSecret = try storage.openSecret(sealedSecret)
    let openedBytes = openedSecret.withUnsafeBytes { Array($0) }
    #expect(sealedSecret == plainSecret)
    #expect(openedBytes == [1, 2, 3, 4, 5])
    #expect(throws: CryptoError.wrongLength(expected: 24, actual: 1)) { try BoxNonce([1]) }
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 1
      let tampered = caught { () throws(CryptoError) in _ = try storage.open(altered) }
      let cut = caught { () throws(CryptoError) in _ = try storage.open(Array(sealed[..<index])) }
      #expect(tampered == .authenticationFailed)
      #expect(cut == .authenticationFailed)
    }
    let wrongKey = caught { () throws(CryptoError) in _ = try other.openSecret(sealed) }
    #expect(wrongKey == .authenticationFailed)
  }
}
