/// A store's name in its account, such as `com.example.Bookmarks` (Apple's kvstore-identifier).
public struct StoreIdentifier: Codable, CodingKeyRepresentable, Hashable, Comparable, Sendable,
  CustomStringConvertible
{
  package static let maximumBytes = 255

  /// The identifier's text.
  public let rawValue: String

  /// Makes an identifier; nil if the text is empty, longer than 255 bytes of UTF-8, or holds a
  /// control character.
  public init?(_ rawValue: String) {
    let bytes = rawValue.utf8.count
    guard bytes > 0, bytes <= Self.maximumBytes,
      rawValue.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7f })
    else { return nil }
    self.rawValue = rawValue
  }

  /// Whether the account keeps data of its own there, which no program and no report shows: its name
  /// begins with `kith.`.
  package var isReserved: Bool { rawValue.utf8.starts(with: "kith.".utf8) }

  /// Reads the text.
  public init(from decoder: any Decoder) throws {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let identifier = Self(text) else {
      throw DecodingError.dataCorrupted(
        .init(codingPath: decoder.codingPath, debugDescription: "not a store identifier"))
    }
    self = identifier
  }

  /// Writes the text.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }

  /// The text as an encoded dictionary's key.
  public var codingKey: any CodingKey { rawValue.codingKey }

  /// Reads an encoded dictionary's key; nil if it is not a valid identifier.
  public init?(codingKey: some CodingKey) { self.init(codingKey.stringValue) }

  /// The identifier's text.
  public var description: String { rawValue }

  /// Compares UTF-8 bytes, as the store's tag does; `String` compares by canonical equivalence.
  public static func == (left: Self, right: Self) -> Bool { left.bytes == right.bytes }

  /// Hashes UTF-8 bytes.
  public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }

  /// Compares as UTF-8 bytes.
  public static func < (left: Self, right: Self) -> Bool { left.bytes < right.bytes }

  private var bytes: Key { Key(rawValue) }
}
