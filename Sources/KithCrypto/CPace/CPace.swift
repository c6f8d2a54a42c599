import CSodium

/// One side of CPACE-RISTR255-SHA512 (draft-irtf-cfrg-cpace): two sides with the same short
/// password agree on a key. A side without it learns only whether one guess was right.
///
/// Each side sends its ``share`` and passes the other's to
/// ``key(setting:associated:remote:remoteAssociated:)``. Then both must prove the key: with
/// different passwords the keys differ without an error.
package struct CPace: ~Copyable, Sendable {
  private let scalar: CPaceScalar
  private let session: [UInt8]

  /// The share for the other side: the scalar times the generator.
  package let share: CPaceShare

  /// Starts an exchange.
  ///
  /// - Parameters:
  ///   - password: The password of both sides (`PRS`).
  ///   - channel: The two parties, the same on both sides (`CI`).
  ///   - session: The name of the exchange, the same on both sides and never used again (`sid`).
  ///   - scalar: A random scalar for this exchange alone.
  /// - Throws: `invalidKey` if the scalar is a multiple of the group's order, as zero is.
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

  /// Returns the key that both sides have in common (`ISK`), if their passwords are the same.
  ///
  /// - Parameters:
  ///   - setting: The side of this device; the other passes the opposite.
  ///   - associated: The data that this side sent beside its share (`AD`).
  ///   - remote: The other side's share.
  ///   - remoteAssociated: The data that the other side sent beside it.
  /// - Returns: The key. It equals the other side's only if the passwords are the same.
  /// - Throws: `invalidKey` if the share is no element of the group, or its identity.
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

  /// Makes a session's key from the secret point of its two sides, and the shares and data that
  /// both sent.
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

  /// Returns the scalar times the other side's share (`K`).
  borrowing func sharedPoint(with remote: CPaceShare) throws(CryptoError) -> SecretBytes {
    try remote.withUnsafeBytes { remote throws(CryptoError) in try scalar.times(remote) }
  }

  /// Returns the generator for the password and this session (`g`).
  static func generator(
    password: borrowing SecretBytes, channel: [UInt8], session: [UInt8]
  ) -> SecretBytes {
    let domain = CPaceText.prefixed(Array("CPaceRistretto255".utf8))
    let length = CPaceText.length(password.count)
    // Fills the first block of SHA-512, so that the public part starts in the second.
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

/// The side of an exchange.
package enum CPaceSetting: Sendable {
  /// The side whose share comes first.
  case initiator
  /// The other side.
  case responder
  /// No side comes first; both pass this.
  case symmetric
}

/// One side's share: an element of ristretto255. A peer's 32 bytes are checked when they are used.
package struct CPaceShare: FixedBytes {
  /// The bytes.
  package let storage: Bytes32

  /// Makes the value with these bytes.
  @inlinable package init(storage: Bytes32) { self.storage = storage }
}
