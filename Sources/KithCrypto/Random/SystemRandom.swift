import CSodium

/// The system's random source, by libsodium's `randombytes_buf`: the only impure part of this
/// module.
package struct SystemRandom: RandomNumberGenerator, Entropy {
  /// Makes a source; all values of this type are equal.
  package init() {
    Sodium.start()
  }

  /// Returns a random number.
  package mutating func next() -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { fill($0) }
    return number
  }

  /// Draws `count` random bytes.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      randombytes_buf(UnsafeMutableRawBufferPointer(buffer).bytePointer, count)
      initializedCount = count
    }
  }

  /// Fills the buffer with random bytes.
  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    randombytes_buf(buffer.bytePointer, buffer.count)
  }
}
