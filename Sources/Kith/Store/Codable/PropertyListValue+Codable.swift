public import KithCore

extension PropertyListValue {
  /// The property-list value of any `Encodable` one.
  ///
  /// Keyed containers become dictionaries and unkeyed ones arrays, dates and data stay what they
  /// are, a URL is its absolute string. Nil as a member leaves its key out.
  ///
  /// - Parameter value: What to encode.
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``, whose message names the
  ///   coding path: nil where a value must stand, an integer beyond 64 bits with a sign, more than
  ///   64 arrays and dictionaries inside each other, or what the type itself refuses.
  /// - Complexity: O(*n*) in the size of the value.
  public init(encoding value: some Encodable) throws(KithError) {
    do {
      self = try PropertyListValueEncoder.encode(value)
    } catch {
      throw KithError(coding: error, "The value cannot be stored")
    }
  }

  /// The value as a `Decodable` type; the reverse of ``init(encoding:)``.
  ///
  /// - Parameter type: The type to decode.
  /// - Returns: The decoded value.
  /// - Throws: ``KithError`` with ``KithError/Code/unsupportedValue``, whose message names the
  ///   coding path and what stands there instead.
  /// - Complexity: O(*n*) in the size of the value.
  public func decoded<T: Decodable>(as type: T.Type = T.self) throws(KithError) -> T {
    do {
      return try PropertyListValueDecoder(self).decode(type)
    } catch {
      throw KithError(coding: error, "The value is not of the type \(type)")
    }
  }
}

extension KithError {
  /// Says where coding failed. What failed is not kept as the cause: it may hold the value.
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
