/// A source of random bytes: the system's in production, a seeded one in tests.
package protocol Entropy: Sendable {
  mutating func bytes(_ count: Int) -> [UInt8]

  /// A source that can write in place implements this, so that no copy of a secret remains.
  mutating func fill(_ buffer: UnsafeMutableRawBufferPointer)
}

extension Entropy {
  /// Falls back to `bytes(_:)`, and zeroes the drawn bytes.
  package mutating func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    var drawn = bytes(buffer.count)
    buffer.copyBytes(from: drawn)
    Sodium.zero(&drawn)
  }

  package mutating func draw<Value: FixedBytes>(_ type: Value.Type = Value.self) -> Value {
    Value { fill($0) }
  }
}
