/// A key of a store, compared as UTF-8 bytes so that all peers agree, unlike `String`.
public struct Key: Codable, Hashable, Comparable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The key's text.
  public let text: String

  /// Makes a key from a text.
  @inlinable
  public init(_ text: String) {
    self.text = text
  }

  /// Makes a key from a literal.
  public init(stringLiteral text: String) {
    self.text = text
  }

  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    text = try decoder.singleValueContainer().decode(String.self)
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(text)
  }

  /// The length in bytes of UTF-8; O(1) for native strings.
  package var size: Int { text.utf8.count }

  /// The key's text.
  public var description: String { text }

  // Comparing keys takes most of a read's time: inlinable, and over the bytes in place.

  /// Compares bytes.
  @inlinable
  public static func == (left: Self, right: Self) -> Bool {
    let (left, right) = (left.text.utf8, right.text.utf8)
    guard left.count == right.count else { return false }
    let isEqual = left.withContiguousStorageIfAvailable { left in
      right.withContiguousStorageIfAvailable { left.elementsEqual($0) }
    }
    return (isEqual ?? nil) ?? left.elementsEqual(right)
  }

  /// Hashes bytes.
  @inlinable
  public func hash(into hasher: inout Hasher) {
    let isHashed: Void? = text.utf8.withContiguousStorageIfAvailable {
      hasher.combine(bytes: UnsafeRawBufferPointer($0))
    }
    if isHashed == nil {
      let bytes = Array(text.utf8)
      bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
    }
  }

  /// Compares bytes.
  @inlinable
  public static func < (left: Self, right: Self) -> Bool {
    let (left, right) = (left.text.utf8, right.text.utf8)
    let isBefore = left.withContiguousStorageIfAvailable { left in
      right.withContiguousStorageIfAvailable { left.lexicographicallyPrecedes($0) }
    }
    return (isBefore ?? nil) ?? left.lexicographicallyPrecedes(right)
  }
}
