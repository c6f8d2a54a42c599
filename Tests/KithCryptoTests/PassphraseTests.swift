import KithCrypto
import Testing

@Suite("Passphrases")
struct PassphraseTests {
  @Test("Argon2id, made with PyNaCl 1.6.2")
  func knownAnswer() throws {
    var text = [UInt8]("correct horse".utf8)
    let stretched = try Passphrase(zeroing: &text).derive(
      salt: PassphraseSalt(Array(0..<16)),
      parameters: Argon2Parameters(operations: 2, memoryBytes: 65_536))
    #expect(text.allSatisfy { $0 == 0 })
    let isSame = stretched.isSame(
      as: key(hex("9c87c06898bc18516669b54a8b95d36e622946494d7a55c26f391a0406068c19")))
    #expect(isSame)
  }

  @Test("Parameters from a hostile file are refused, with what is allowed")
  func bounds() {
    for operations in [-1, 0, 17, Int.max] {
      #expect(
        throws: CryptoError.parameterOutOfBounds(
          name: "operations", allowed: 1...16, actual: operations)
      ) { try Argon2Parameters(operations: operations, memoryBytes: 65_536) }
    }
    for memory in [-1, 0, 8_191, 1_073_741_825, Int.max] {
      #expect(
        throws: CryptoError.parameterOutOfBounds(
          name: "memoryBytes", allowed: 8_192...1_073_741_824, actual: memory)
      ) { try Argon2Parameters(operations: 2, memoryBytes: memory) }
    }
    #expect(Argon2Parameters.moderate.memoryBytes == 268_435_456)
  }

  @Test("An empty passphrase is a passphrase")
  func empty() throws {
    let parameters = try Argon2Parameters(operations: 1, memoryBytes: 8_192)
    let salt = PassphraseSalt(storage: Bytes16())
    var (none, zero) = ([UInt8](), [UInt8](arrayLiteral: 0))
    let empty = try Passphrase(zeroing: &none).derive(salt: salt, parameters: parameters)
    let other = try Passphrase(zeroing: &zero).derive(salt: salt, parameters: parameters)
    let isSame = empty.isSame(as: other)
    #expect(!isSame)
  }

  @Test("Two are the same where all their bytes are")
  func comparing() {
    func made(_ text: String) -> Passphrase {
      var bytes = Array(text.utf8)
      return Passphrase(zeroing: &bytes)
    }
    #expect(made("horse").isSame(as: made("horse")))
    for other in ["Horse", "hors", "horsey", ""] {
      #expect(!made("horse").isSame(as: made(other)))
    }
  }
}
