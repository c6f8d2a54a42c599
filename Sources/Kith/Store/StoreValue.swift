public import KithCore

/// A type whose values a store can hold under a ``StoreKey``.
///
/// Property-list scalars, floats and integers of every width, dates, data, URLs and UUIDs conform.
/// So do arrays, dictionaries with string keys, and optionals. An enum with raw values, or any
/// `Codable` type, conforms by naming the protocol, in its declaration or in one line beside it:
///
/// ```swift
/// enum Theme: String, StoreValue { case system, dark }
/// struct Window: Codable, StoreValue { var width = 0, height = 0 }
/// extension Calendar.Identifier: @retroactive StoreValue {}
/// ```
/// If a store shows a value of another type, written by an older version of the program for
/// example, the key reads as its default. Reading never writes: the value stays until the program
/// sets the key.
public protocol StoreValue: Sendable {
  /// Makes the value from a property-list value, or nil if that has another type.
  init?(propertyListValue: PropertyListValue)

  /// Returns the property-list value of this one.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``.
  func propertyListValue() throws(KithError) -> PropertyListValue
}

extension StoreValue {
  /// Returns the value that setting a key writes; nil removes the key. Only an optional may have
  /// none, because nil has no property-list value.
  package func storedValue() throws(KithError) -> PropertyListValue? {
    if let optional = self as? any OptionalStoreValue { return try optional.wrappedStoredValue() }
    return try propertyListValue()
  }
}

/// An optional, for ``StoreValue/storedValue()`` to tell it from other values.
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
