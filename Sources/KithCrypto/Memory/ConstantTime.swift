import CSodium

/// Returns whether two byte strings are equal, in a time that depends only on their lengths.
///
/// - Complexity: O(*n*).
package func constantTimeEquals(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

/// Returns whether two secrets are equal, in a time that depends only on their lengths.
///
/// - Complexity: O(*n*).
package func constantTimeEquals(
  _ first: borrowing SecretBytes, _ second: borrowing SecretBytes
) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

extension Sodium {
  /// Returns whether two buffers are equal, in a time that depends only on their lengths.
  static func equal(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    first.count == second.count
      && sodium_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
  }
}
