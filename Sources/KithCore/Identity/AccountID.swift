package import KithCrypto

/// An account's id: the BLAKE2b-256 of its genesis record's body (`Docs/Glossary.md`).
public struct AccountID: Codable, Hashable, Comparable, Sendable, CustomStringConvertible {
  package let digest: Digest256

  package init(_ digest: Digest256) {
    self.digest = digest
  }

  /// Reads the text.
  public init(from decoder: any Decoder) throws { digest = try Digest256(from: decoder) }

  /// Writes all bytes in hexadecimal.
  public func encode(to encoder: any Encoder) throws { try digest.encode(to: encoder) }

  package var bytes: [UInt8] { digest.bytes }

  /// All bytes in lower-case hexadecimal.
  public var hex: String { digest.hex }

  /// Shortened hexadecimal, for logs.
  public var description: String { digest.description }

  /// Compares as bytes.
  public static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}
