import CSodium

/// A secret key that both seals and opens (`crypto_secretbox`).
package protocol SecretBoxKey: SecretKey, ~Copyable {}

extension SecretBoxKey where Self: ~Copyable {
  /// The number of bytes that sealing adds: nonce and authenticator.
  package static var overhead: Int { nonceByteCount + Int(crypto_secretbox_MACBYTES) }

  private static var nonceByteCount: Int { Int(crypto_secretbox_NONCEBYTES) }

  package borrowing func seal(_ plaintext: [UInt8], using entropy: inout some Entropy) -> [UInt8] {
    seal(plaintext, nonce: entropy.draw(BoxNonce.self))
  }

  /// Seals in O(*n*) under a random nonce, used once, with which the result begins.
  package borrowing func seal(_ plaintext: [UInt8], nonce: BoxNonce) -> [UInt8] {
    plaintext.withUnsafeBytes { seal($0, nonce) }
  }

  /// Reads the secret in place; otherwise like ``seal(_:nonce:)``.
  package borrowing func seal(secret: borrowing SecretBytes, nonce: BoxNonce) -> [UInt8] {
    secret.withUnsafeBytes { seal($0, nonce) }
  }

  /// Throws `authenticationFailed` unless this key sealed the data. O(*n*).
  package borrowing func open(_ sealed: [UInt8]) throws(CryptoError) -> [UInt8] {
    guard sealed.count >= Self.overhead else { throw .authenticationFailed }
    var plaintext = [UInt8](repeating: 0, count: sealed.count - Self.overhead)
    let isAuthentic = plaintext.withUnsafeMutableBytes { open(sealed, into: $0) }
    guard isAuthentic else { throw .authenticationFailed }
    return plaintext
  }

  /// Opens into guarded memory; throws `authenticationFailed` unless this key sealed the secret.
  package borrowing func openSecret(_ sealed: [UInt8]) throws(CryptoError) -> SecretBytes {
    guard sealed.count >= Self.overhead else { throw .authenticationFailed }
    return try SecretBytes(count: sealed.count - Self.overhead) { target throws(CryptoError) in
      guard open(sealed, into: target) else { throw .authenticationFailed }
    }
  }

  private borrowing func seal(_ plaintext: UnsafeRawBufferPointer, _ nonce: BoxNonce) -> [UInt8] {
    let sealedCount = plaintext.count + Self.overhead
    return withUnsafeBytes { key in
      [UInt8](unsafeUninitializedCapacity: sealedCount) { target, count in
        let target = UnsafeMutableRawBufferPointer(target)
        nonce.withUnsafeBytes { nonce in
          target.copyMemory(from: nonce)
          _ = crypto_secretbox_easy(
            target.bytePointer + Self.nonceByteCount, plaintext.bytePointer,
            UInt64(plaintext.count), nonce.bytePointer, key.bytePointer)
        }
        count = sealedCount
      }
    }
  }

  private borrowing func open(
    _ sealed: [UInt8], into target: UnsafeMutableRawBufferPointer
  ) -> Bool {
    withUnsafeBytes { key in
      sealed.withUnsafeBytes { sealed in
        crypto_secretbox_open_easy(
          target.bytePointer, sealed.bytePointer + Self.nonceByteCount,
          UInt64(sealed.count - Self.nonceByteCount), sealed.bytePointer, key.bytePointer) == 0
      }
    }
  }
}
