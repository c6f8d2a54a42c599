/// An Ed25519 public key, which verifies signatures; a device's id is one.
public struct SigningPublicKey: FixedBytes, Codable, Hashable, Comparable, Sendable,
  CustomStringConvertible
{
  @usableFromInline package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }

  /// Reads 64 hexadecimal digits; nil for any other text.
  public init?(hex text: String) {
    guard let bytes = Self.bytes(hex: text) else { return nil }
    try? self.init(bytes)
  }

  /// Reads the hexadecimal digits.
  public init(from decoder: any Decoder) throws { self = try Self.decoded(from: decoder) }

  /// Writes the hexadecimal digits.
  public func encode(to encoder: any Encoder) throws { try encodeHex(to: encoder) }

  /// All bytes in lower-case hexadecimal.
  public var hex: String { hexDigits }

  /// The first 12 digits: enough to tell devices apart in a log.
  public var description: String { String(hexDigits.prefix(12)) }

  /// Compares as bytes.
  @inlinable
  public static func < (left: Self, right: Self) -> Bool { left.storage < right.storage }
}

/// An X25519 public key that boxes are sealed to or from.
package struct BoxPublicKey: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}

/// An X25519 public key of the Noise handshake, static or ephemeral.
package struct TransportPublicKey: FixedBytes {
  package let storage: Bytes32

  @inlinable package init(storage: Bytes32) { self.storage = storage }
}
