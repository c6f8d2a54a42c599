import CSodium

/// A source of random bytes: the system's in production, a seeded one in tests.
package protocol Entropy: Sendable {
  mutating func fill(_ buffer: UnsafeMutableRawBufferPointer)
}

extension Entropy {
  package mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      fill(UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<count]))
      initializedCount = count
    }
  }

  package mutating func draw<Value: FixedBytes>(_ type: Value.Type = Value.self) -> Value {
    Value { fill($0) }
  }
}

extension RandomNumberGenerator where Self: Entropy {
  package mutating func next() -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { fill($0) }
    return UInt64(littleEndian: number)
  }
}

/// The system's random source (`randombytes_buf`), the only impure part of this module.
package struct SystemRandom: RandomNumberGenerator, Entropy {
  package init() {
    Sodium.start()
  }

  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    randombytes_buf(buffer.bytePointer, buffer.count)
  }
}

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
