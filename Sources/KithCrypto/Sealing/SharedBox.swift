import CSodium

/// The key that two box keys share, computed once for any number of boxes (`crypto_box_beforenm`,
/// `crypto_box_easy_afternm`).
///
/// Both sides compute the same key, so it authenticates neither. A class, so that a dictionary can
/// hold it.
package final class SharedBox: Sendable {
  package static let overhead = Int(crypto_box_MACBYTES)

  private let key: SecretBytes

  /// Throws `invalidKey` if `theirs` is of low order.
  package init(_ mine: borrowing BoxKey, with theirs: BoxPublicKey) throws(CryptoError) {
    var isValid = false
    key = mine.withUnsafeBytes { mine in
      theirs.withUnsafeBytes { theirs in
        SecretBytes(count: Int(crypto_box_BEFORENMBYTES)) { shared in
          isValid =
            crypto_box_beforenm(shared.bytePointer, theirs.bytePointer, mine.bytePointer) == 0
        }
      }
    }
    guard isValid else { throw .invalidKey }
  }

  /// O(*n*); no nonce may be used twice under one pair of keys.
  package func seal(_ plaintext: [UInt8], nonce: BoxNonce) -> [UInt8] {
    let sealedCount = plaintext.count + Self.overhead
    return key.withUnsafeBytes { key in
      nonce.withUnsafeBytes { nonce in
        [UInt8](unsafeUninitializedCapacity: sealedCount) { target, count in
          _ = crypto_box_easy_afternm(
            UnsafeMutableRawBufferPointer(target).bytePointer, plaintext,
            UInt64(plaintext.count), nonce.bytePointer, key.bytePointer)
          count = sealedCount
        }
      }
    }
  }

  /// Throws `authenticationFailed` unless either side sealed the box. O(*n*).
  package func open(_ sealed: [UInt8], nonce: BoxNonce) throws(CryptoError) -> [UInt8] {
    guard sealed.count >= Self.overhead else { throw .authenticationFailed }
    var isAuthentic = false
    let plaintext = key.withUnsafeBytes { key in
      nonce.withUnsafeBytes { nonce in
        sealed.withUnsafeBytes { sealed in
          [UInt8](unsafeUninitializedCapacity: sealed.count - Self.overhead) { target, count in
            isAuthentic =
              crypto_box_open_easy_afternm(
                UnsafeMutableRawBufferPointer(target).bytePointer, sealed.bytePointer,
                UInt64(sealed.count), nonce.bytePointer, key.bytePointer) == 0
            count = isAuthentic ? sealed.count - Self.overhead : 0
          }
        }
      }
    }
    guard isAuthentic else { throw .authenticationFailed }
    return plaintext
  }
}

/// An anonymous box in the format of `crypto_box_seal`: the ephemeral public key, then the box
/// under a nonce hashed from both public keys.
///
/// The caller passes the ephemeral key, which makes sealing a pure function.
package enum AnonymousBox {
  package static let overhead = BoxPublicKey.byteCount + SharedBox.overhead

  /// Reads the secret in place. Throws `invalidKey` if `recipient` is of low order. The `ephemeral`
  /// seed must be random, for this box alone.
  package static func seal<Secret: SecretKey & ~Copyable>(
    secret: borrowing Secret, to recipient: BoxPublicKey, ephemeral: borrowing BoxSeed
  ) throws(CryptoError) -> [UInt8] {
    let sender = BoxKey(seed: ephemeral)
    let input = sender.publicKey.bytes + recipient.bytes
    let nonce = BoxNonce {
      _ = crypto_generichash($0.bytePointer, $0.count, input, UInt64(input.count), nil, 0)
    }
    var sealed = sender.publicKey.bytes
    let isValid = secret.withUnsafeBytes { secret in
      sealed.append(contentsOf: repeatElement(0, count: secret.count + SharedBox.overhead))
      return sealed.withUnsafeMutableBytes { sealed in
        let target = UnsafeMutableRawBufferPointer(rebasing: sealed[BoxPublicKey.byteCount...])
        return nonce.withUnsafeBytes { nonce in
          recipient.withUnsafeBytes { recipient in
            sender.withUnsafeBytes { sender in
              crypto_box_easy(
                target.bytePointer, secret.bytePointer, UInt64(secret.count), nonce.bytePointer,
                recipient.bytePointer, sender.bytePointer) == 0
            }
          }
        }
      }
    }
    guard isValid else { throw .invalidKey }
    return sealed
  }

  /// Opens into guarded memory; throws `authenticationFailed` unless the box was sealed to `key`.
  package static func openSecret(
    _ sealed: [UInt8], with key: borrowing BoxKey
  ) throws(CryptoError) -> SecretBytes {
    guard sealed.count >= overhead else { throw .authenticationFailed }
    let publicKey = key.publicKey
    return try key.withUnsafeBytes { secretKey throws(CryptoError) in
      try SecretBytes(count: sealed.count - overhead) { target throws(CryptoError) in
        let isAuthentic = publicKey.withUnsafeBytes { publicKey in
          crypto_box_seal_open(
            target.bytePointer, sealed, UInt64(sealed.count), publicKey.bytePointer,
            secretKey.bytePointer) == 0
        }
        guard isAuthentic else { throw .authenticationFailed }
      }
    }
  }
}

/// The random part of a box nonce that the boxes of one change set share.
package struct NoncePrefix: FixedBytes {
  package let storage: Bytes20

  @inlinable package init(storage: Bytes20) { self.storage = storage }
}

/// A nonce for boxes: never used twice under one pair of keys.
package struct BoxNonce: FixedBytes {
  package let storage: Bytes24

  @inlinable package init(storage: Bytes24) { self.storage = storage }

  /// The prefix, then the index as 32-bit big-endian.
  package init(prefix: NoncePrefix, index: UInt32) {
    self.init { (buffer) in
      prefix.withUnsafeBytes { buffer.copyMemory(from: $0) }
      buffer.storeBytes(of: index.bigEndian, toByteOffset: NoncePrefix.byteCount, as: UInt32.self)
    }
  }
}
