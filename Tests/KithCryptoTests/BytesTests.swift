import KithCrypto
import Testing

@Suite("Fixed-size bytes")
struct BytesTests {
  @Test("They compare as bytes do")
  func order() throws {
    var entropy = SeededEntropy(seed: 2)
    var keys: [SigningPublicKey] = (0..<200).map { _ in entropy.draw() }
    // Neighbours that differ in one place only, so that every word decides once.
    for index in 0..<32 {
      var bytes = keys[0].bytes
      bytes[index] &+= 1
      keys.append(try SigningPublicKey(bytes))
    }
    let sorted = keys.sorted()
    let byBytes = keys.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    #expect(sorted == byBytes)
    #expect(Set(keys).count == keys.count)
    let prefixes: [NoncePrefix] = (0..<200).map { _ in entropy.draw() }
    #expect(
      prefixes.sorted() == prefixes.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) })
  }

  @Test("They keep their bytes, and take no other number of them")
  func lengths() throws {
    func check<Value: FixedBytes>(_ type: Value.Type, _ count: Int) throws {
      let bytes = [UInt8](0..<UInt8(count))
      #expect(Value.byteCount == count)
      #expect(try Value(bytes).bytes == bytes)
      #expect(try Value(([9] + bytes)[1...]).bytes == bytes)
      for wrong in [0, count - 1, count + 1] {
        #expect(throws: CryptoError.wrongLength(expected: count, actual: wrong)) {
          try Value([UInt8](repeating: 0, count: wrong))
        }
      }
    }
    try check(SigningPublicKey.self, 32)
    try check(BoxPublicKey.self, 32)
    try check(TransportPublicKey.self, 32)
    try check(Digest256.self, 32)
    try check(Digest128.self, 16)
    try check(PassphraseSalt.self, 16)
    try check(Signature.self, 64)
    try check(NoncePrefix.self, 20)
    try check(BoxNonce.self, 24)
  }

  @Test("In a log they are short")
  func description() throws {
    let digest = try Digest128(Array(0xf0...0xff))
    #expect("\(digest)" == "f0f1f2f3f4f5")
    #expect(digest.hex == "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
  }
}
