internal import KithCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Decodes any `Decodable` type from a property-list value; the reverse of
/// ``PropertyListValueEncoder``.
struct PropertyListValueDecoder: Decoder, SingleValueDecodingContainer {
  let value: PropertyListValue
  let codingPath: [any CodingKey]
  let userInfo: [CodingUserInfoKey: Any] = [:]

  init(_ value: PropertyListValue, codingPath: [any CodingKey] = []) {
    self.value = value
    self.codingPath = codingPath
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .dictionary(let members) = value else { throw mismatch(type) }
    return KeyedDecodingContainer(KeyedValues<Key>(members: members, codingPath: codingPath))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let values) = value else { throw mismatch([PropertyListValue].self) }
    return UnkeyedValues(values: values, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeNil() -> Bool { false }
  func decode(_ type: Bool.Type) throws -> Bool { try scalar(type) }
  func decode(_ type: String.Type) throws -> String { try scalar(type) }
  func decode(_ type: Double.Type) throws -> Double { try scalar(type) }
  func decode(_ type: Float.Type) throws -> Float { Float(try scalar(Double.self)) }
  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }

  func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let found: Any? =
      switch type {
      case is PropertyListValue.Type: value
      case is Date.Type: Date(propertyListValue: value)
      case is Data.Type: Data(propertyListValue: value)
      case is URL.Type: URL(propertyListValue: value)
      default: try T(from: self)
      }
    guard let found = found as? T else { throw mismatch(type) }
    return found
  }

  private func scalar<T: StoreValue>(_ type: T.Type) throws -> T {
    guard let found = T(propertyListValue: value) else { throw mismatch(type) }
    return found
  }

  private func integer<T: BinaryInteger>(_ type: T.Type) throws -> T {
    guard let found = T(exactly: try scalar(Int64.self)) else { throw mismatch(type) }
    return found
  }

  private func mismatch(_ type: Any.Type) -> DecodingError {
    .typeMismatch(
      type, .init(codingPath: codingPath, debugDescription: "the value is of another type"))
  }
}

/// The members of a dictionary while it is being decoded.
struct KeyedValues<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: [String: PropertyListValue]
  let codingPath: [any CodingKey]
  var allKeys: [Key] { members.keys.sorted().compactMap(Key.init(stringValue:)) }

  private func decoder(_ key: any CodingKey) throws -> PropertyListValueDecoder {
    guard let value = members[key.stringValue] else {
      throw DecodingError.keyNotFound(
        key, .init(codingPath: codingPath, debugDescription: "the member is missing"))
    }
    return PropertyListValueDecoder(value, codingPath: codingPath + [key])
  }

  func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }
  func decodeNil(forKey key: Key) -> Bool { members[key.stringValue] == nil }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    try decoder(key).decode(type)
  }
  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try decoder(key).container(keyedBy: type)
  }
  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(key).unkeyedContainer()
  }
  func superDecoder() throws -> any Decoder {
    guard let value = members["super"] else {
      return PropertyListValueDecoder(.dictionary([:]), codingPath: codingPath)
    }
    return PropertyListValueDecoder(value, codingPath: codingPath)
  }
  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }
}

/// The elements of an array while it is being decoded.
struct UnkeyedValues: UnkeyedDecodingContainer {
  let values: [PropertyListValue]
  let codingPath: [any CodingKey]
  private(set) var currentIndex = 0
  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  init(values: [PropertyListValue], codingPath: [any CodingKey]) {
    self.values = values
    self.codingPath = codingPath
  }

  private mutating func next() throws -> PropertyListValueDecoder {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        PropertyListValue.self,
        .init(codingPath: codingPath, debugDescription: "the array has no more elements"))
    }
    defer { currentIndex += 1 }
    return PropertyListValueDecoder(values[currentIndex], codingPath: codingPath)
  }

  mutating func decodeNil() -> Bool { false }
  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next().decode(type) }
  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try next().container(keyedBy: type)
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next().unkeyedContainer()
  }
  mutating func superDecoder() throws -> any Decoder { try next() }
}
