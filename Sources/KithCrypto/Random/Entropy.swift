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
