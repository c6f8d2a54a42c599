import CSodium

/// One side of CPACE-RISTR255-SHA512 (draft-irtf-cfrg-cpace): sides with the same short password
/// agree on a key. A side without it learns only whether one guess was right.
///
/// Each side sends its ``share``, then calls ``key(setting:associated:remote:remoteAssociated:)``.
/// Both must prove the key: different passwords give different keys without an error.
package struct CPace: ~Copyable, Sendable {
  private let scalar: CPaceScalar
  private let session: [UInt8]

  /// The scalar times the generator.
  package let share: CPaceShare

  /// Starts an exchange.
  ///
  /// `channel` names the two parties (`CI`) and `session` the exchange (`sid`), equal on both
  /// sides; no session is used again. The scalar must be random, for this exchange alone; one that
  /// is a multiple of the group's order, as zero is, throws `invalidKey`.
  package init(
    password: borrowing SecretBytes, channel: [UInt8], session: [UInt8],
    scalar: consuming CPaceScalar
  ) throws(CryptoError) {
    let generator = Self.generator(password: password, channel: channel, session: session)
    let point: SecretBytes = try generator.withUnsafeBytes { generator throws(CryptoError) in
      try scalar.times(generator)
    }
    share = CPaceShare { target in point.withUnsafeBytes { target.copyMemory(from: $0) } }
    self.scalar = scalar
    self.session = session
  }

  /// Returns the key (`ISK`), equal on both sides only if their passwords are.
  ///
  /// The other side passes the opposite `setting`. The associated data is what each side sent with
  /// its share (`AD`). Throws `invalidKey` if the share is no element of the group, or its
  /// identity.
  package consuming func key(
    setting: CPaceSetting, associated: [UInt8] = [], remote: CPaceShare,
    remoteAssociated: [UInt8] = []
  ) throws(CryptoError) -> CPaceKey {
    let point = try sharedPoint(with: remote)
    let own = CPaceText.prefixed(share.bytes) + CPaceText.prefixed(associated)
    let other = CPaceText.prefixed(remote.bytes) + CPaceText.prefixed(remoteAssociated)
    let transcript =
      switch setting {
      case .initiator: own + other
      case .responder: other + own
      case .symmetric:
        Array("oc".utf8) + (other.lexicographicallyPrecedes(own) ? own + other : other + own)
      }
    return Self.key(session: session, point: point, transcript: transcript)
  }

  /// Makes the key of the secret point and the transcript of both sides.
  static func key(
    session: [UInt8], point: borrowing SecretBytes, transcript: [UInt8]
  ) -> CPaceKey {
    let head =
      CPaceText.prefixed(Array("CPaceRistretto255_ISK".utf8)) + CPaceText.prefixed(session)
    return CPaceKey(
      unchecked: SecretBytes(count: CPaceKey.byteCount) { key in
        point.withUnsafeBytes { point in
          CPaceText.hash(
            [head, CPaceText.length(point.count)], secret: point, [transcript], into: key)
        }
      })
  }

  /// The draft's `K`.
  borrowing func sharedPoint(with remote: CPaceShare) throws(CryptoError) -> SecretBytes {
    try remote.withUnsafeBytes { remote throws(CryptoError) in try scalar.times(remote) }
  }

  /// The generator for the password and this session (`g`).
  static func generator(
    password: borrowing SecretBytes, channel: [UInt8], session: [UInt8]
  ) -> SecretBytes {
    let domain = CPaceText.prefixed(Array("CPaceRistretto255".utf8))
    let length = CPaceText.length(password.count)
    // Fills the first block of SHA-512: the public part starts in the second.
    let padding = max(0, 128 - 1 - length.count - password.count - domain.count)
    let rest =
      CPaceText.prefixed([UInt8](repeating: 0, count: padding)) + CPaceText.prefixed(channel)
      + CPaceText.prefixed(session)
    let digest = SecretBytes(count: 64) { digest in
      password.withUnsafeBytes {
        CPaceText.hash([domain, length], secret: $0, [rest], into: digest)
      }
    }
    return SecretBytes(count: CPaceShare.byteCount) { point in
      digest.withUnsafeBytes {
        _ = crypto_core_ristretto255_from_hash(point.bytePointer, $0.bytePointer)
      }
    }
  }
}

package enum CPaceSetting: Sendable {
  case initiator
  case responder
  /// No side comes first; both pass this.
  case symmetric
}

/// One side's share, an element of ristretto255. A peer's bytes are checked at their use.
package struct CPaceShare: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}

/// The common key of two sides with the same password.
package struct CPaceKey: ~Copyable, Sendable {
  static let byteCount = 64
  private let secret: SecretBytes

  init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  /// The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }

  /// Returns a proof of having the key: BLAKE2b-256 of the message under it, in O(*n*).
  package borrowing func proof(of message: [UInt8]) -> Digest256 {
    secret.withUnsafeBytes { key in Digest256 { Self.digest(message, under: key, into: $0) } }
  }

  /// Derives a key: BLAKE2b-256 of the message under this key. The message must differ from those
  /// of all proofs.
  package borrowing func derive<Key: SecretKey & ~Copyable>(
    _ message: [UInt8], as type: Key.Type = Key.self
  ) -> Key {
    Key(
      unchecked: secret.withUnsafeBytes { key in
        SecretBytes(count: secretKeyByteCount) { Self.digest(message, under: key, into: $0) }
      })
  }

  private static func digest(
    _ message: [UInt8], under key: UnsafeRawBufferPointer,
    into target: UnsafeMutableRawBufferPointer
  ) {
    _ = crypto_generichash(
      target.bytePointer, target.count, message, UInt64(message.count), key.bytePointer, key.count)
  }
}

/// One side's secret number in one exchange.
package struct CPaceScalar: SecretKey, ~Copyable {
  private let secret: SecretBytes

  /// Wraps 32 little-endian bytes; the caller has checked the count.
  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  /// Draws a number, uniform below the group's order.
  package init(random entropy: inout some Entropy) {
    let wide = SecretBytes(
      random: Int(crypto_core_ristretto255_NONREDUCEDSCALARBYTES), using: &entropy)
    secret = SecretBytes(count: Int(crypto_core_ristretto255_SCALARBYTES)) { scalar in
      wide.withUnsafeBytes {
        crypto_core_ristretto255_scalar_reduce(scalar.bytePointer, $0.bytePointer)
      }
    }
  }

  /// The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }

  /// Throws `invalidKey` if the bytes are no element, or the product is the identity.
  borrowing func times(_ element: UnsafeRawBufferPointer) throws(CryptoError) -> SecretBytes {
    Sodium.start()
    // libsodium 1.0.18 ignores the highest bit, which would give an element two encodings.
    guard let last = element.last, last < 0x80 else { throw .invalidKey }
    return try SecretBytes(count: Int(crypto_core_ristretto255_BYTES)) {
      product throws(CryptoError) in
      let status = secret.withUnsafeBytes {
        crypto_scalarmult_ristretto255(product.bytePointer, $0.bytePointer, element.bytePointer)
      }
      guard status == 0 else { throw .invalidKey }
    }
  }
}

/// Byte strings as the draft joins and hashes them.
enum CPaceText {
  /// The length in LEB128.
  static func length(_ count: Int) -> [UInt8] {
    var rest = count
    var bytes: [UInt8] = []
    repeat {
      bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  /// The bytes after their length (`prepend_len`).
  static func prefixed(_ bytes: [UInt8]) -> [UInt8] { length(bytes.count) + bytes }

  /// SHA-512 of public bytes, a secret, and public bytes. Leaves no copy of the secret.
  static func hash(
    _ before: [[UInt8]], secret: UnsafeRawBufferPointer, _ after: [[UInt8]],
    into digest: UnsafeMutableRawBufferPointer
  ) {
    Sodium.start()
    var state = crypto_hash_sha512_state()
    _ = crypto_hash_sha512_init(&state)
    for part in before { _ = crypto_hash_sha512_update(&state, part, UInt64(part.count)) }
    _ = crypto_hash_sha512_update(&state, secret.bytePointer, UInt64(secret.count))
    for part in after { _ = crypto_hash_sha512_update(&state, part, UInt64(part.count)) }
    _ = crypto_hash_sha512_final(&state, digest.bytePointer)
    withUnsafeMutableBytes(of: &state) { Sodium.zero($0) }
  }

  /// Joins parts, each after its length (`lv_cat`).
  static func joined(_ parts: [[UInt8]]) -> [UInt8] { parts.flatMap(prefixed) }
}

extension CPace {
  /// A channel identifier: each part follows its length, so that borders count.
  package static func channel(_ parts: [UInt8]...) -> [UInt8] { CPaceText.joined(parts) }
}
