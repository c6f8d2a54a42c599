internal import FoundationEssentials
internal import KithCore

/// Decodes any `Decodable` type; the reverse of ``EncodingNode``.
struct PropertyListValueDecoder: Decoder, SingleValueDecodingContainer {
  let value: PropertyListValue
  let path: CodingPath?
  /// Stand in for members that the value lacks, except optional ones; nil: it must have all.
  let missing: MemberDefaults?
  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(
    _ value: PropertyListValue, at path: CodingPath? = nil, missing: MemberDefaults? = nil
  ) {
    self.value = value
    self.path = path
    self.missing = missing
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .dictionary(let members) = value else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(KeyedValues<Key>(members: members, path: path, missing: missing))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let values) = value else { throw mismatch([Any].self) }
    return UnkeyedValues(values: values, path: path, isFilled: missing != nil)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { false }
  func decode(_ type: Bool.Type) throws -> Bool {
    guard case .bool(let found) = value else { throw mismatch(type) }
    return found
  }
  func decode(_ type: String.Type) throws -> String {
    guard case .string(let found) = value else { throw mismatch(type) }
    return found
  }
  /// An integer counts if a double holds it exactly.
  func decode(_ type: Double.Type) throws -> Double {
    let found: Double? =
      switch value {
      case .double(let double): double
      case .integer(let integer): Double(exactly: integer)
      default: nil
      }
    return try unwrap(found)
  }
  /// The float nearest to a double. A finite double that is too large counts as another type.
  func decode(_ type: Float.Type) throws -> Float {
    let found: Float? =
      switch value {
      case .double(let double): Float(double).isFinite || !double.isFinite ? Float(double) : nil
      case .integer(let integer): Float(exactly: integer)
      default: nil
      }
    return try unwrap(found)
  }
  func decode<T: Decodable & FixedWidthInteger>(_ type: T.Type) throws -> T { try integer(type) }
  // Not generic, because the standard library's own functions, which only throw, would be chosen.
  func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    // The encoder's special types, in the form that stores have for them.
    if T.self == PropertyListValue.self, let found = value as? T { return found }
    guard T.self == Date.self || T.self == Data.self || T.self == URL.self else {
      guard let missing else { return try T(from: self) }
      return try T(from: PropertyListValueDecoder(value, at: path, missing: missing.of(T.self)))
    }
    let found: Any? =
      switch value {
      case .date(let date): date
      case .data(let data): data
      case .string(let text): URL(string: text)
      default: nil
      }
    return try unwrap(found as? T)
  }

  /// A double without a fraction counts as an integer.
  private func integer<T: FixedWidthInteger>(_ type: T.Type) throws -> T {
    let found: T? =
      switch value {
      case .integer(let integer): T(exactly: integer)
      case .double(let double): T(exactly: double)
      default: nil
      }
    return try unwrap(found)
  }

  private func unwrap<T>(_ found: T?) throws -> T {
    guard let found else { throw mismatch(T.self) }
    return found
  }

  private func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(
      type, .init(codingPath: codingPath, debugDescription: "no \(type), but \(value.kind)"))
  }
}

extension PropertyListValue {
  /// The kind of the value, for messages, which never hold the value.
  var kind: String {
    switch self {
    case .integer, .array: "an \(typeName)"
    case .data: typeName
    case .bool, .double, .string, .date, .dictionary: "a \(typeName)"
    }
  }
}
