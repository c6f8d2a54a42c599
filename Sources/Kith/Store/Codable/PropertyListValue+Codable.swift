public import KithCore

extension PropertyListValue {
  /// Makes the property-list value of any `Encodable` value.
  ///
  /// Keyed containers become dictionaries, unkeyed containers arrays. Dates and data keep their
  /// types, a URL becomes its absolute string, and nil leaves out its key.
  ///
  /// ```swift
  /// let value = try PropertyListValue(encoding: ["width": 800, "height": 600])
  /// ```
  ///
  /// - Parameter value: The value to encode.
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue`` and the coding path. Causes:
  ///   nil in an array or as the whole value, an integer beyond signed 64 bits, more than 64 nested
  ///   arrays and dictionaries, or an error of the type itself.
  /// - Complexity: O(*n*) in the value's size.
  public init(encoding value: some Encodable) throws(KithError) {
    do {
      let node = EncodingNode()
      try node.encode(value, at: nil)
      self = try node.finished(at: nil)
    } catch {
      throw KithError(coding: error, "The value cannot be stored")
    }
  }

  /// Decodes the value as a `Decodable` type; the reverse of ``init(encoding:)``.
  ///
  /// - Parameter type: The type to decode.
  /// - Returns: The decoded value.
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``, the coding path, and the
  ///   kind of value there.
  /// - Complexity: O(*n*) in the value's size.
  public func decoded<T: Decodable>(as type: T.Type = T.self) throws(KithError) -> T {
    do {
      return try PropertyListValueDecoder(self).decode(type)
    } catch {
      throw KithError(coding: error, "The value is not of the type \(type)")
    }
  }
}

extension KithError {
  /// Drops the coding error, which may hold the value.
  init(coding error: any Error, _ what: String) {
    let context: (path: [any CodingKey], reason: String)? =
      switch error {
      case let error as KithError: ([], error.message)
      case EncodingError.invalidValue(_, let context):
        (context.codingPath, context.debugDescription)
      case DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context),
        DecodingError.keyNotFound(_, let context), DecodingError.dataCorrupted(let context):
        (context.codingPath, context.debugDescription)
      default: nil
      }
    guard let context else {
      self.init(.unsupportedValue, "\(what).", cause: error)
      return
    }
    let path = context.path.map(\.stringValue).joined(separator: ".")
    let place = path.isEmpty ? "" : "at \(path): "
    self.init(.unsupportedValue, "\(what): \(place)\(context.reason).")
  }
}
