import CSodium

/// The system's random source, by libsodium's `randombytes_buf`.
///
/// The only impure thing in this module. It is for the shells, which draw and hand in.
public struct SystemRandom: RandomNumberGenerator, Entropy {
  /// The system's source; all values of this type are alike.
  public init() {
    Sodium.start()
  }

  /// A random number.
  public mutating func next() -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { fill($0) }
    return number
  }

  /// Draws `count` random bytes.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      randombytes_buf(UnsafeMutableRawBufferPointer(buffer).bytePointer, count)
      initializedCount = count
    }
  }

  /// Fills the buffer with random bytes.
  public mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    randombytes_buf(buffer.bytePointer, buffer.count)
  }
}
