import CSodium

/// The hash, the chaining key and the cipher of a handshake (Noise, section 5.2).
struct SymmetricState: ~Copyable, Sendable {
  typealias Layout = HandshakeSecrets.Layout

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
    hash.withUnsafeBytes { self.secrets.store($0, at: Layout.chainingKey) }
  }

  var hasKey: Bool { nonce != nil }

  mutating func mixHash(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { mixHash($0) }
  }

  mutating func mixHash(_ bytes: UnsafeRawBufferPointer) {
    hash = NoiseHash.hash(hash, bytes)
  }

  mutating func mixKey(_ publicKey: TransportPublicKey) {
    publicKey.withUnsafeBytes { secrets.store($0, at: Layout.sharedSecret) }
    mixKey(at: Layout.sharedSecret)
  }

  /// Mixes in the X25519 of the private key in `range` and a public key.
  mutating func mixSharedSecret(
    _ range: Range<Int>, _ publicKey: TransportPublicKey
  ) throws(NoiseError) {
    let isValid = secrets.memory.withUnsafeMutableBytes { memory in
      publicKey.withUnsafeBytes { publicKey in
        crypto_scalarmult(
          memory.bytePointer + Layout.sharedSecret.lowerBound,
          memory.bytePointer + range.lowerBound, publicKey.bytePointer) == 0
      }
    }
    guard isValid else { throw .invalidPublicKey }
    mixKey(at: Layout.sharedSecret)
  }

  mutating func mixPresharedKey(_ index: Int) {
    derive(from: Layout.presharedKey(index), outputCount: 3)
    hash = secrets.memory.withUnsafeBytes {
      NoiseHash.hash(hash, Self.part($0, output(1, count: NoiseHash.byteCount)))
    }
    installOutputs(cipherKeyFrom: 2)
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
              key: Self.part(memory, Layout.cipherKey), nonce: nonce, authenticating: hash)
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
              message, key: Self.part(memory, Layout.cipherKey), nonce: nonce,
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

  private mutating func mixKey(at range: Range<Int>) {
    derive(from: range, outputCount: 2)
    installOutputs(cipherKeyFrom: 1)
  }

  private mutating func derive(from input: Range<Int>, outputCount: Int) {
    let outputs =
      Layout.outputs.lowerBound..<(Layout.outputs.lowerBound + outputCount * NoiseHash.byteCount)
    secrets.memory.withUnsafeMutableBytes { memory in
      let readable = UnsafeRawBufferPointer(memory)
      NoiseHash.derive(
        chainingKey: Self.part(readable, Layout.chainingKey), input: Self.part(readable, input),
        scratch: UnsafeMutableRawBufferPointer(rebasing: memory[Layout.scratch]),
        outputs: UnsafeMutableRawBufferPointer(rebasing: memory[outputs]))
    }
  }

  private mutating func installOutputs(cipherKeyFrom index: Int) {
    let chainingKey = output(0, count: NoiseHash.byteCount)
    let cipherKey = output(index, count: secretKeyByteCount)
    secrets.memory.withUnsafeMutableBytes { memory in
      let base = memory.bytePointer
      (base + Layout.chainingKey.lowerBound)
        .update(from: base + chainingKey.lowerBound, count: chainingKey.count)
      (base + Layout.cipherKey.lowerBound)
        .update(from: base + cipherKey.lowerBound, count: cipherKey.count)
    }
    nonce = 0
  }

  private borrowing func output(_ index: Int, count: Int) -> Range<Int> {
    let start = Layout.outputs.lowerBound + index * NoiseHash.byteCount
    return start..<(start + count)
  }

  private static func part(
    _ memory: UnsafeRawBufferPointer, _ range: Range<Int>
  ) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: memory[range])
  }
}

/// BLAKE2b-512, HMAC (RFC 2104, block of 128 bytes) and Noise's HKDF (section 4.3) over it.
///
/// Noise requires HMAC instead of BLAKE2b's own keyed mode.
package enum NoiseHash {
  static let byteCount = 64

  private static let blockByteCount = 128

  static func hash(_ first: [UInt8], _ second: UnsafeRawBufferPointer) -> [UInt8] {
    var state = kith_blake2b_state()
    kith_blake2b_init(&state, byteCount)
    kith_blake2b_update(&state, first, UInt64(first.count))
    kith_blake2b_update(&state, second.bytePointer, UInt64(second.count))
    var digest = [UInt8](repeating: 0, count: byteCount)
    kith_blake2b_final(&state, &digest, byteCount)
    return digest
  }

  /// Writes as many outputs of 64 bytes, one to three, as fit in `outputs`.
  ///
  /// `scratch` takes 64 secret bytes; it and `outputs` overlap neither each other nor the inputs.
  static func derive(
    chainingKey: UnsafeRawBufferPointer, input: UnsafeRawBufferPointer,
    scratch: UnsafeMutableRawBufferPointer, outputs: UnsafeMutableRawBufferPointer
  ) {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    authenticate(key: chainingKey, input, nil, into: scratch)
    var previous = nothing
    for index in 0..<(outputs.count / byteCount) {
      let range = (index * byteCount)..<((index + 1) * byteCount)
      let output = UnsafeMutableRawBufferPointer(rebasing: outputs[range])
      authenticate(
        key: UnsafeRawBufferPointer(scratch), previous, UInt8(index + 1), into: output)
      previous = UnsafeRawBufferPointer(output)
    }
  }

  /// HMAC of a message and an optional last byte, under a key of 64 bytes.
  package static func authenticate(
    key: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer, _ lastByte: UInt8?,
    into tag: UnsafeMutableRawBufferPointer
  ) {
    var state = kith_blake2b_state()
    start(&state, key: key, mask: 0x36)
    kith_blake2b_update(&state, message.bytePointer, UInt64(message.count))
    if var lastByte { kith_blake2b_update(&state, &lastByte, 1) }
    kith_blake2b_final(&state, tag.bytePointer, byteCount)
    start(&state, key: key, mask: 0x5c)
    kith_blake2b_update(&state, tag.bytePointer, UInt64(byteCount))
    kith_blake2b_final(&state, tag.bytePointer, byteCount)
    withUnsafeMutableBytes(of: &state) { Sodium.zero($0) }
  }

  private static func start(
    _ state: inout kith_blake2b_state, key: UnsafeRawBufferPointer, mask: UInt8
  ) {
    withUnsafeTemporaryAllocation(byteCount: blockByteCount, alignment: 16) { block in
      for index in 0..<blockByteCount {
        block[index] = (index < key.count ? key[index] : 0) ^ mask
      }
      kith_blake2b_init(&state, byteCount)
      kith_blake2b_update(&state, block.bytePointer, UInt64(blockByteCount))
      Sodium.zero(block)
    }
  }
}
