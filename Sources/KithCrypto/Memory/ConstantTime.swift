import CSodium

/// Whether two byte strings are equal, in a time that depends on their lengths alone.
///
/// - Complexity: O(*n*).
public func constantTimeEquals(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

/// Whether two secrets are equal, in a time that depends on their lengths alone.
///
/// - Complexity: O(*n*).
public func constantTimeEquals(
  _ first: borrowing SecretBytes, _ second: borrowing SecretBytes
) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

extension Sodium {
  /// Whether two buffers are equal, in a time that depends on their lengths alone.
  static func equal(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    first.count == second.count
      && sodium_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
  }
}
