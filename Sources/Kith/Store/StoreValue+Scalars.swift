public import KithCore

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

extension PropertyListValue: StoreValue {
  /// The value itself.
  public init?(propertyListValue: PropertyListValue) { self = propertyListValue }

  /// The value itself.
  public func propertyListValue() throws(KithError) -> PropertyListValue { self }
}

extension Bool: StoreValue {
  /// A bool; numbers are none.
  public init?(propertyListValue: PropertyListValue) {
    guard case .bool(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The bool.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .bool(self) }
}

extension String: StoreValue {
  /// A string.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(self) }
}

extension Date: StoreValue {
  /// A date.
  public init?(propertyListValue: PropertyListValue) {
    guard case .date(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The date.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .date(self) }
}

extension Data: StoreValue {
  /// Data.
  public init?(propertyListValue: PropertyListValue) {
    guard case .data(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The data.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .data(self) }
}

extension URL: StoreValue {
  /// The URL that a string spells.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self.init(string: value)
  }

  /// The URL's absolute string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(absoluteString) }
}

extension UUID: StoreValue {
  /// The UUID that a string spells.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self.init(uuidString: value)
  }

  /// The UUID's string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(uuidString) }
}
