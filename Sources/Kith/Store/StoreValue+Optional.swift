public import KithCore

extension Optional: StoreValue where Wrapped: StoreValue {
  /// A value of the wrapped type. Nil is never stored: a key that shows nothing reads as its
  /// default, which a key of an optional type has as nil.
  public init?(propertyListValue: PropertyListValue) {
    guard let wrapped = Wrapped(propertyListValue: propertyListValue) else { return nil }
    self = .some(wrapped)
  }

  /// The wrapped value's.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue`` for nil, which only a key as
  ///   a whole can be: not an element of an array.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    guard let self else {
      throw KithError(
        .unsupportedValue,
        "Nil cannot be stored inside an array or a dictionary. Leave the element out.")
    }
    return try self.propertyListValue()
  }

  /// The wrapped value's; nil removes the key.
  public func storedValue() throws(KithError) -> PropertyListValue? {
    try self?.storedValue()
  }
}

extension StoreKey where Value: ExpressibleByNilLiteral {
  /// Makes a key that reads as nil while it shows nothing; setting nil removes it.
  ///
  /// - Parameter name: The key's name, 1 to 64 bytes of UTF-8 under the standard policy.
  public init(_ name: String) {
    self.init(name, default: nil)
  }
}
