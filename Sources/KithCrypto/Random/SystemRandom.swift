import CSodium

/// The system's random source (`randombytes_buf`), the only impure part of this module.
package struct SystemRandom: RandomNumberGenerator, Entropy {
  package init() {
    Sodium.start()
  }

  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    randombytes_buf(buffer.bytePointer, buffer.count)
  }
}
