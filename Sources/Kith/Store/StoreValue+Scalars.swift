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
  /// Makes a bool from a bool, never from a number.
  public init?(propertyListValue: PropertyListValue) {
    guard case .bool(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The bool.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .bool(self) }
}

extension String: StoreValue {
  /// Makes a string from a string.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(self) }
}

extension Date: StoreValue {
  /// Makes a date from a date.
  public init?(propertyListValue: PropertyListValue) {
    guard case .date(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The date.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .date(self) }
}

extension Data: StoreValue {
  /// Makes data from data.
  public init?(propertyListValue: PropertyListValue) {
    guard case .data(let value) = propertyListValue else { return nil }
    self = value
  }

  /// The data.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .data(self) }
}

extension URL: StoreValue {
  /// Makes a URL from its string.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self.init(string: value)
  }

  /// The URL's absolute string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(absoluteString) }
}

extension UUID: StoreValue {
  /// Makes a UUID from its string.
  public init?(propertyListValue: PropertyListValue) {
    guard case .string(let value) = propertyListValue else { return nil }
    self.init(uuidString: value)
  }

  /// The UUID's string.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .string(uuidString) }
}
