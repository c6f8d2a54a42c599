internal import KithCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Decodes any `Decodable` type; the reverse of ``PropertyListValueEncoder``.
struct PropertyListValueDecoder: Decoder, SingleValueDecodingContainer {
  let value: PropertyListValue
  let path: CodingPath?
  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ value: PropertyListValue, at path: CodingPath? = nil) {
    self.value = value
    self.path = path
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .dictionary(let members) = value else { throw mismatch([String: Any].self) }
    return KeyedDecodingContainer(KeyedValues<Key>(members: members, path: path))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let values) = value else { throw mismatch([Any].self) }
    return UnkeyedValues(values: values, path: path)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { false }
  func decode(_ type: Bool.Type) throws -> Bool { try scalar(type) }
  func decode(_ type: String.Type) throws -> String { try scalar(type) }
  func decode(_ type: Double.Type) throws -> Double { try scalar(type) }
  func decode(_ type: Float.Type) throws -> Float { try scalar(type) }
  func decode(_ type: Int.Type) throws -> Int { try scalar(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try scalar(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try scalar(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try scalar(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try scalar(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try scalar(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try scalar(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try scalar(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try scalar(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try scalar(type) }
  func decode(_ type: Int128.Type) throws -> Int128 { Int128(try scalar(Int64.self)) }
  func decode(_ type: UInt128.Type) throws -> UInt128 { UInt128(try scalar(UInt64.self)) }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let found: Any?
    // The encoder's special types, in the form that stores have for them.
    if T.self == Date.self {
      found = Date(propertyListValue: value)
    } else if T.self == Data.self {
      found = Data(propertyListValue: value)
    } else if T.self == URL.self {
      found = URL(propertyListValue: value)
    } else if T.self == PropertyListValue.self {
      found = value
    } else {
      return try T(from: self)
    }
    guard let found = found as? T else { throw mismatch(type) }
    return found
  }

  private func scalar<T: StoreValue>(_ type: T.Type) throws -> T {
    guard let found = T(propertyListValue: value) else { throw mismatch(type) }
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
    case .bool: "a bool"
    case .integer: "an integer"
    case .double: "a double"
    case .string: "a string"
    case .date: "a date"
    case .data: "data"
    case .array: "an array"
    case .dictionary: "a dictionary"
    }
  }
}
