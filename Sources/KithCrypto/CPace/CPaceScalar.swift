import CSodium

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
