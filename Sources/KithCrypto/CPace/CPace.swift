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
