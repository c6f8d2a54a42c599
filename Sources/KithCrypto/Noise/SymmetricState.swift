import CSodium

/// The hash, the chaining key and the cipher of a handshake (Noise, section 5.2).
struct SymmetricState: ~Copyable, Sendable {
  typealias Place = HandshakeSecrets.Place

  var secrets: HandshakeSecrets
  private(set) var hash: [UInt8]
  /// The counter of the next encryption; nil while there is no key.
  private var nonce: UInt64?

  init(protocolName: String, secrets: consuming HandshakeSecrets) {
    let name = Array(protocolName.utf8)
    if name.count <= NoiseHash.byteCount {
      hash = name + repeatElement(0, count: NoiseHash.byteCount - name.count)
    } else {
      hash = name.withUnsafeBytes { NoiseHash.hash([], $0) }
    }
    self.secrets = secrets
    hash.withUnsafeBytes { self.secrets.store($0, at: Place.chainingKey) }
  }

  var hasKey: Bool { nonce != nil }

  mutating func mixHash(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { mixHash($0) }
  }

  mutating func mixHash(_ bytes: UnsafeRawBufferPointer) {
    hash = NoiseHash.hash(hash, bytes)
  }

  mutating func mixKey(_ publicKey: TransportPublicKey) {
    publicKey.withUnsafeBytes { secrets.store($0, at: Place.sharedSecret) }
    mixKey(at: Place.sharedSecret)
  }

  /// Mixes in the X25519 of the private key at `place` and a public key.
  mutating func mixSharedSecret(
    _ place: Range<Int>, _ publicKey: TransportPublicKey
  ) throws(NoiseError) {
    let isValid = secrets.memory.withUnsafeMutableBytes { memory in
      publicKey.withUnsafeBytes { publicKey in
        crypto_scalarmult(
          memory.bytePointer + Place.sharedSecret.lowerBound,
          memory.bytePointer + place.lowerBound, publicKey.bytePointer) == 0
      }
    }
    guard isValid else { throw .invalidPublicKey }
    mixKey(at: Place.sharedSecret)
  }

  mutating func mixPresharedKey(_ index: Int) {
    derive(from: Place.presharedKey(index), outputCount: 3)
    hash = secrets.memory.withUnsafeBytes {
      NoiseHash.hash(hash, Self.part($0, output(1, count: NoiseHash.byteCount)))
    }
    adoptOutputs(cipherKeyFrom: 2)
  }

  /// Appends the plaintext, encrypted if there is a key, and mixes it in.
  mutating func encryptAndHash(_ plaintext: [UInt8], into message: inout [UInt8]) {
    let start = message.count
    message += plaintext
    if let nonce {
      message.append(contentsOf: repeatElement(0, count: CipherState.overhead))
      message.withUnsafeMutableBytes { message in
        secrets.memory.withUnsafeBytes { memory in
          hash.withUnsafeBytes { hash in
            NoiseCipher.encrypt(
              UnsafeMutableRawBufferPointer(rebasing: message[start...]),
              key: Self.part(memory, Place.cipherKey), nonce: nonce, authenticating: hash)
          }
        }
      }
      self.nonce = nonce + 1
    }
    message.withUnsafeBytes { mixHash(UnsafeRawBufferPointer(rebasing: $0[start...])) }
  }

  /// Decrypts the bytes if there is a key, and mixes them in.
  mutating func decryptAndHash(_ received: ArraySlice<UInt8>) throws(NoiseError) -> [UInt8] {
    var plaintext = Array(received)
    if let nonce {
      guard received.count >= CipherState.overhead else { throw .messageTooShort }
      let isAuthentic = plaintext.withUnsafeMutableBytes { message in
        secrets.memory.withUnsafeBytes { memory in
          hash.withUnsafeBytes { hash in
            NoiseCipher.decrypt(
              message, key: Self.part(memory, Place.cipherKey), nonce: nonce,
              authenticating: hash)
          }
        }
      }
      guard isAuthentic else { throw .authenticationFailed }
      plaintext.removeLast(CipherState.overhead)
      self.nonce = nonce + 1
    }
    received.withUnsafeBytes { mixHash($0) }
    return plaintext
  }

  /// The initiator's key comes first.
  mutating func split() -> SecretPair {
    derive(from: 0..<0, outputCount: 2)
    return secrets.memory.withUnsafeBytes { memory in
      SecretPair(
        first: SecretBytes(count: secretKeyByteCount) {
          $0.copyMemory(from: Self.part(memory, output(0, count: secretKeyByteCount)))
        },
        second: SecretBytes(count: secretKeyByteCount) {
          $0.copyMemory(from: Self.part(memory, output(1, count: secretKeyByteCount)))
        })
    }
  }

  struct SecretPair: ~Copyable {
    let first: SecretBytes
    let second: SecretBytes
  }

  private mutating func mixKey(at place: Range<Int>) {
    derive(from: place, outputCount: 2)
    adoptOutputs(cipherKeyFrom: 1)
  }

  private mutating func derive(from input: Range<Int>, outputCount: Int) {
    let outputs =
      Place.outputs.lowerBound..<(Place.outputs.lowerBound + outputCount * NoiseHash.byteCount)
    secrets.memory.withUnsafeMutableBytes { memory in
      let readable = UnsafeRawBufferPointer(memory)
      NoiseHash.derive(
        chainingKey: Self.part(readable, Place.chainingKey), input: Self.part(readable, input),
        scratch: UnsafeMutableRawBufferPointer(rebasing: memory[Place.scratch]),
        outputs: UnsafeMutableRawBufferPointer(rebasing: memory[outputs]))
    }
  }

  private mutating func adoptOutputs(cipherKeyFrom index: Int) {
    let chainingKey = output(0, count: NoiseHash.byteCount)
    let cipherKey = output(index, count: secretKeyByteCount)
    secrets.memory.withUnsafeMutableBytes { memory in
      let base = memory.bytePointer
      (base + Place.chainingKey.lowerBound)
        .update(from: base + chainingKey.lowerBound, count: chainingKey.count)
      (base + Place.cipherKey.lowerBound)
        .update(from: base + cipherKey.lowerBound, count: cipherKey.count)
    }
    nonce = 0
  }

  private borrowing func output(_ index: Int, count: Int) -> Range<Int> {
    let start = Place.outputs.lowerBound + index * NoiseHash.byteCount
    return start..<(start + count)
  }

  private static func part(
    _ memory: UnsafeRawBufferPointer, _ place: Range<Int>
  ) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[place])
  }
}
