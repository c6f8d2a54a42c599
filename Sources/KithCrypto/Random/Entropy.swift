/// A source of random bytes: the system's in production, a seeded one in tests.
package protocol Entropy: Sendable {
  /// Draws `count` bytes.
  mutating func bytes(_ count: Int) -> [UInt8]

  /// Fills the buffer with drawn bytes.
  ///
  /// A source that can write in place implements this, so that no copy of a secret remains.
  mutating func fill(_ buffer: UnsafeMutableRawBufferPointer)
}

extension Entropy {
  /// Fills the buffer through `bytes(_:)`, and zeroes the drawn bytes.
  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    var drawn = bytes(buffer.count)
    buffer.copyBytes(from: drawn)
    Sodium.zero(&drawn)
  }

  /// Draws a value of a fixed-size byte type: a nonce, a prefix, a salt.
  package mutating func draw<Value: FixedBytes>(_ type: Value.Type = Value.self) -> Value {
    Value { fill($0) }
  }
}
