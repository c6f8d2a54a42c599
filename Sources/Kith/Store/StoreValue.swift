public import KithCore

/// A type whose values a store can hold under a ``StoreKey``.
///
/// The property-list scalars, dates, data, URLs, UUIDs, arrays and dictionaries conform. An enum
/// with raw values, or any `Codable` type, conforms by naming the protocol:
///
/// ```swift
/// enum Theme: String, StoreValue { case system, dark }
/// struct Window: Codable, StoreValue { var width = 0, height = 0 }
/// ```
public protocol StoreValue: Sendable {
  /// The value that a property-list value stands for, or nil where it stands for none.
  init?(propertyListValue: PropertyListValue)

  /// The property-list value that stands for this one.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``.
  func propertyListValue() throws(KithError) -> PropertyListValue
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
    guard let value = try? Self(from: PropertyListValueDecoder(propertyListValue)) else {
      return nil
    }
    self = value
  }

  /// Encodes the value: keyed containers become dictionaries, unkeyed ones arrays.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    do {
      return try PropertyListValueEncoder.encode(self)
    } catch {
      throw KithError(
        .unsupportedValue, "The value cannot be encoded as a property-list value.", cause: error)
    }
  }
}
