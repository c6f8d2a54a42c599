/// A key of a store. Keys are compared as UTF-8 bytes, on every peer alike; `String` would take
/// canonically equivalent texts for the same.
public struct Key: Hashable, Comparable, Sendable, ExpressibleByStringLiteral,
  CustomStringConvertible
{
  /// The key's text.
  public let text: String

  /// Makes a key of a text.
  public init(_ text: String) {
    self.text = text
  }

  /// Makes a key of a literal.
  public init(stringLiteral text: String) {
    self.text = text
  }

  /// The length in bytes of UTF-8. Complexity: O(1) for native strings.
  public var size: Int { text.utf8.count }

  /// The key's text.
  public var description: String { text }

  /// Compares bytes.
  public static func == (left: Self, right: Self) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  /// Hashes bytes.
  public func hash(into hasher: inout Hasher) {
    var text = text
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }

  /// Compares bytes.
  public static func < (left: Self, right: Self) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }
}
