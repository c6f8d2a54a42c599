public import KithCore

extension StoreValue where Self: FixedWidthInteger, Self: Codable {
  /// Makes the number from an integer, or a double without a fraction, if the type can hold it.
  public init?(propertyListValue: PropertyListValue) {
    switch propertyListValue {
    case .integer(let value): self.init(exactly: value)
    case .double(let value): self.init(exactly: value)
    default: return nil
    }
  }

  /// The integer.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue`` if the integer exceeds signed
  ///   64 bits.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    guard let value = Int64(exactly: self) else {
      throw KithError(
        .unsupportedValue,
        "The integer is beyond \(Int64.max), the largest that property lists hold.")
    }
    return .integer(value)
  }
}

extension Int: StoreValue {}
extension Int8: StoreValue {}
extension Int16: StoreValue {}
extension Int32: StoreValue {}
extension Int64: StoreValue {}
extension UInt: StoreValue {}
extension UInt8: StoreValue {}
extension UInt16: StoreValue {}
extension UInt32: StoreValue {}
extension UInt64: StoreValue {}

extension Double: StoreValue {
  /// Makes the number from a double, or from an integer that a double holds exactly.
  public init?(propertyListValue: PropertyListValue) {
    switch propertyListValue {
    case .double(let value): self = value
    case .integer(let value): self.init(exactly: value)
    default: return nil
    }
  }

  /// The double.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .double(self) }
}

extension Float: StoreValue {
  /// Makes the float nearest to a double, or from an integer that a float holds exactly.
  ///
  /// A finite double that is too large for a float gives nil.
  public init?(propertyListValue: PropertyListValue) {
    switch propertyListValue {
    case .double(let value):
      let nearest = Float(value)
      guard nearest.isFinite || !value.isFinite else { return nil }
      self = nearest
    case .integer(let value): self.init(exactly: value)
    default: return nil
    }
  }

  /// The float as a double, which is exact.
  public func propertyListValue() throws(KithError) -> PropertyListValue { .double(Double(self)) }
}
