import CSodium

/// A deterministic source for tests and the simulator, never for real keys: the same seed and calls
/// give the same bytes everywhere.
///
/// Each call takes the next nonce of one ChaCha20 key, so its bytes depend on the number of earlier
/// calls, not on their sizes.
package struct SeededEntropy: RandomNumberGenerator, Entropy {
  private let key: Digest256
  private var callCount: UInt64 = 0

  package init(seed: UInt64) {
    key = withUnsafeBytes(of: seed.littleEndian) { Blake2b.digest256(Array($0)) }
  }

  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    var nonce = callCount.littleEndian
    callCount += 1
    withUnsafeBytes(of: &nonce) { nonce in
      key.withUnsafeBytes { key in
        _ = crypto_stream_chacha20(
          buffer.bytePointer, UInt64(buffer.count), nonce.bytePointer, key.bytePointer)
      }
    }
  }
}
