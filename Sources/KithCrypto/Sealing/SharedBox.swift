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
