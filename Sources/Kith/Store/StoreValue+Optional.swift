public import KithCore

extension Optional: StoreValue where Wrapped: StoreValue {
  /// Makes an optional from a value of the wrapped type.
  ///
  /// Nil is never stored: a key of an optional type without a value reads as its default.
  public init?(propertyListValue: PropertyListValue) {
    guard let wrapped = Wrapped(propertyListValue: propertyListValue) else { return nil }
    self = .some(wrapped)
  }

  /// The wrapped value's property-list value.
  ///
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue`` for nil: only a whole key can
  ///   be nil.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    guard let self else {
      throw KithError(
        .unsupportedValue,
        "Nil cannot be stored inside an array or a dictionary. Leave the element out.")
    }
    return try self.propertyListValue()
  }
}

extension Optional: OptionalStoreValue where Wrapped: StoreValue {
  func wrappedStoredValue() throws(KithError) -> PropertyListValue? {
    try self?.storedValue()
  }
}

extension StoreKey where Value: ExpressibleByNilLiteral {
  /// Makes a key that reads as nil if it has no value; setting nil removes it.
  ///
  /// ```swift
  /// let draft = StoreKey<String?>("draft")
  /// ```
  ///
  /// - Parameter name: The key's ``name``.
  public init(_ name: String) {
    self.init(name, default: nil)
  }
}
