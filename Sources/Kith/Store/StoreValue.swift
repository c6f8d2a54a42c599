public import KithCore

/// A type whose values a store can hold under a ``StoreKey``.
///
/// Property-list scalars, integers and floats of every width, dates, data, URLs and UUIDs conform,
/// also in arrays, optionals, and dictionaries with string keys. An enum with raw values, or any
/// `Codable` type, conforms by naming the protocol:
///
/// ```swift
/// enum Theme: String, StoreValue { case system, dark }
/// struct Window: Codable, StoreValue { var width = 0, height = 0 }
/// extension Calendar.Identifier: @retroactive StoreValue {}
/// ```
/// If a store shows a value of another type, such as an older program's, the key reads as its
/// default. The value stays until the program sets the key.
public protocol StoreValue: Sendable {
  /// Makes the value, or nil if the property-list value has another type.
  init?(propertyListValue: PropertyListValue)

  /// Returns the property-list value.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``.
  func propertyListValue() throws(KithError) -> PropertyListValue
}

extension StoreValue {
  /// Returns the value to write, or nil to remove the key, which only an optional may return.
  package func storedValue() throws(KithError) -> PropertyListValue? {
    if let optional = self as? any OptionalStoreValue { return try optional.wrappedStoredValue() }
    return try propertyListValue()
  }
}

/// Lets ``StoreValue/storedValue()`` recognise an optional.
protocol OptionalStoreValue {
  func wrappedStoredValue() throws(KithError) -> PropertyListValue?
}

extension StoreValue where Self: RawRepresentable, RawValue: StoreValue {
  /// Makes the case with this raw value.
  public init?(propertyListValue: PropertyListValue) {
    guard let raw = RawValue(propertyListValue: propertyListValue) else { return nil }
    self.init(rawValue: raw)
  }

  /// Returns the raw value.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    try rawValue.propertyListValue()
  }
}

extension StoreValue where Self: RawRepresentable, RawValue: StoreValue, Self: Codable {
  /// Makes the case with this raw value.
  public init?(propertyListValue: PropertyListValue) {
    guard let raw = RawValue(propertyListValue: propertyListValue) else { return nil }
    self.init(rawValue: raw)
  }

  /// Returns the raw value.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    try rawValue.propertyListValue()
  }
}

extension StoreValue where Self: Codable {
  /// Decodes the value; nil if it has another shape.
  public init?(propertyListValue: PropertyListValue) {
    guard let value = try? PropertyListValueDecoder(propertyListValue).decode(Self.self) else {
      return nil
    }
    self = value
  }

  /// Encodes the value; see ``KithCore/PropertyListValue/init(encoding:)``.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    try PropertyListValue(encoding: self)
  }
}
