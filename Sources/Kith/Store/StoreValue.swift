public import KithCore

/// A type whose values a store can hold under a ``StoreKey``.
///
/// The property-list scalars, floats and integers of every width, dates, data, URLs, UUIDs, arrays,
/// dictionaries by strings and optionals conform. An enum with raw values, or any `Codable` type,
/// conforms by naming the protocol, in its declaration or in one line beside it:
///
/// ```swift
/// enum Theme: String, StoreValue { case system, dark }
/// struct Window: Codable, StoreValue { var width = 0, height = 0 }
/// extension Calendar.Identifier: @retroactive StoreValue {}
/// ```
/// A value that a store shows and that is of another type (an older version of the program wrote
/// it, say) reads as the key's default. Reading never writes: the value stays as it is until the
/// program sets the key.
public protocol StoreValue: Sendable {
  /// The value that a property-list value stands for, or nil where it stands for none.
  init?(propertyListValue: PropertyListValue)

  /// The property-list value that stands for this one.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``.
  func propertyListValue() throws(KithError) -> PropertyListValue

  /// What setting a key to this value writes; nil removes the key.
  ///
  /// Only optionals say anything but ``propertyListValue()`` here: there is no property-list value
  /// that stands for nil.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``.
  func storedValue() throws(KithError) -> PropertyListValue?
}

extension StoreValue {
  /// The property-list value that stands for this one.
  public func storedValue() throws(KithError) -> PropertyListValue? { try propertyListValue() }
}

extension StoreValue where Self: RawRepresentable, RawValue: StoreValue {
  /// The case whose raw value this is.
  public init?(propertyListValue: PropertyListValue) {
    guard let raw = RawValue(propertyListValue: propertyListValue) else { return nil }
    self.init(rawValue: raw)
  }

  /// The raw value.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    try rawValue.propertyListValue()
  }
}

extension StoreValue where Self: RawRepresentable, RawValue: StoreValue, Self: Codable {
  /// The case whose raw value this is.
  public init?(propertyListValue: PropertyListValue) {
    guard let raw = RawValue(propertyListValue: propertyListValue) else { return nil }
    self.init(rawValue: raw)
  }

  /// The raw value.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    try rawValue.propertyListValue()
  }
}

extension StoreValue where Self: Codable {
  /// Decodes the value; nil where it is of another shape.
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
