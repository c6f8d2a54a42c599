internal import FoundationEssentials

extension PropertyListValue: Codable {
  /// A dictionary key.
  private struct Member: CodingKey {
    let stringValue: String
    let intValue: Int? = nil

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
  }

  /// Encodes the value as its content: a bool, a number, a text, an array, a dictionary.
  ///
  /// Under a store's key, and inside `Codable` types under one, every value decodes unchanged. JSON
  /// has no dates and data, so they decode as numbers and texts. From JSON and property lists, a
  /// double without a fraction decodes as an integer.
  ///
  /// - Complexity: O(*n* log *n*) in the size of the value.
  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .array(let values):
      var container = encoder.unkeyedContainer()
      for value in values { try container.encode(value) }
    case .dictionary(let members):
      var container = encoder.container(keyedBy: Member.self)
      for (key, value) in members.sorted(by: { Key($0.key) < Key($1.key) }) {
        try container.encode(value, forKey: Member(stringValue: key))
      }
    default:
      var container = encoder.singleValueContainer()
      switch self {
      case .bool(let value): try container.encode(value)
      case .integer(let value): try container.encode(value)
      case .double(let value): try container.encode(value)
      case .string(let value): try container.encode(value)
      case .date(let value): try container.encode(value)
      case .data(let value): try container.encode(value)
      case .array, .dictionary: break
      }
    }
  }

  /// Decodes the coder's content; see ``encode(to:)``.
  ///
  /// - Throws: `DecodingError` for null, and for arrays and dictionaries nested deeper than
  ///   ``maximumDepth``.
  /// - Complexity: O(*n*) in the size of the value.
  public init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: Member.self) {
      try Self.checkDepth(decoder)
      var members: [String: PropertyListValue] = [:]
      for key in container.allKeys {
        members[key.stringValue] = try container.decode(PropertyListValue.self, forKey: key)
      }
      self = .dictionary(members)
    } else if var container = try? decoder.unkeyedContainer() {
      try Self.checkDepth(decoder)
      var values: [PropertyListValue] = []
      while !container.isAtEnd { values.append(try container.decode(PropertyListValue.self)) }
      self = .array(values)
    } else {
      self = try Self.scalar(decoder.singleValueContainer())
    }
  }

  private static func scalar(_ container: any SingleValueDecodingContainer) throws -> Self {
    if let value = try? container.decode(Bool.self) { return .bool(value) }
    if let value = try? container.decode(Int64.self) { return .integer(value) }
    if let value = try? container.decode(Double.self) { return .double(value) }
    if let value = try? container.decode(String.self) { return .string(value) }
    if let value = try? container.decode(Date.self) { return .date(value) }
    if let value = try? container.decode(Data.self) { return .data(value) }
    throw DecodingError.dataCorruptedError(
      in: container, debugDescription: "property lists have no such value")
  }

  private static func checkDepth(_ decoder: any Decoder) throws {
    guard decoder.codingPath.count < maximumDepth else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath,
          debugDescription: "more than \(maximumDepth) arrays and dictionaries inside each other"))
    }
  }
}

extension PropertyListValue: ExpressibleByBooleanLiteral {
  /// Makes a bool.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension PropertyListValue: ExpressibleByIntegerLiteral {
  /// Makes an integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension PropertyListValue: ExpressibleByFloatLiteral {
  /// Makes a double.
  public init(floatLiteral value: Double) { self = .double(value) }
}

extension PropertyListValue: ExpressibleByStringLiteral {
  /// Makes a string.
  public init(stringLiteral value: String) { self = .string(value) }
}

extension PropertyListValue: ExpressibleByArrayLiteral {
  /// Makes an array.
  public init(arrayLiteral elements: PropertyListValue...) { self = .array(elements) }
}

extension PropertyListValue: ExpressibleByDictionaryLiteral {
  /// Makes a dictionary; of a repeated key, the last value counts.
  public init(dictionaryLiteral elements: (String, PropertyListValue)...) {
    self = .dictionary(Dictionary(elements) { _, later in later })
  }
}

extension PropertyListValue: CustomStringConvertible {
  /// The value for test logs and debuggers, dictionaries in order of their keys' bytes.
  ///
  /// Dates are seconds since 2001: on Linux, Foundation's description traps on a date that is not
  /// finite, which a peer may send.
  ///
  /// - Complexity: O(*n* log *n*) in the size of the value.
  public var description: String {
    switch self {
    case .bool(let bool): return "bool(\(bool))"
    case .integer(let integer): return "integer(\(integer))"
    case .double(let double): return "double(\(double))"
    case .string(let string): return "string(\(string.debugDescription))"
    case .date(let date): return "date(\(date.timeIntervalSinceReferenceDate))"
    case .data(let data): return "data(\(data.count) bytes)"
    case .array(let values):
      return "[" + values.map(\.description).joined(separator: ", ") + "]"
    case .dictionary(let members):
      if members.isEmpty { return "[:]" }
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let texts = sorted.map { "\($0.key.debugDescription): \($0.value)" }
      return "[" + texts.joined(separator: ", ") + "]"
    }
  }
}
