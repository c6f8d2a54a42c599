import CSodium

/// The system's random source (`randombytes_buf`), the only impure part of this module.
package struct SystemRandom: RandomNumberGenerator, Entropy {
  package init() {
    Sodium.start()
  }

  package mutating func next() -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { fill($0) }
    return number
  }

  package mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
      randombytes_buf(UnsafeMutableRawBufferPointer(buffer).bytePointer, count)
      initializedCount = count
    }
  }

  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    randombytes_buf(buffer.bytePointer, buffer.count)
  }
}
