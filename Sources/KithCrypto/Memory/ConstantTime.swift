import CSodium

/// Compares byte strings in O(*n*), in a time that depends only on their lengths.
package func constantTimeEquals(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

extension Sodium {
  /// Takes a time that depends only on the lengths.
  static func equal(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    first.count == second.count
      && sodium_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
  }
}
