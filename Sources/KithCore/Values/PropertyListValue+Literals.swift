extension PropertyListValue: ExpressibleByBooleanLiteral {
  /// A bool.
  public init(booleanLiteral value: Bool) { self = .bool(value) }
}

extension PropertyListValue: ExpressibleByIntegerLiteral {
  /// An integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }
}

extension PropertyListValue: ExpressibleByFloatLiteral {
  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }
}

extension PropertyListValue: ExpressibleByStringLiteral {
  /// A string.
  public init(stringLiteral value: String) { self = .string(value) }
}

extension PropertyListValue: ExpressibleByArrayLiteral {
  /// An array.
  public init(arrayLiteral elements: PropertyListValue...) { self = .array(elements) }
}

extension PropertyListValue: ExpressibleByDictionaryLiteral {
  /// A dictionary; of a key that is written twice the later value stands.
  public init(dictionaryLiteral elements: (String, PropertyListValue)...) {
    self = .dictionary(Dictionary(elements) { _, later in later })
  }
}
