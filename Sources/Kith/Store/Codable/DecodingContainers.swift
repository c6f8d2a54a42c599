internal import KithCore

struct KeyedValues<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: [String: PropertyListValue]
  let path: CodingPath?
  let missing: MemberDefaults?
  var codingPath: [any CodingKey] { path.keys }
  var allKeys: [Key] { members.keys.sorted().compactMap(Key.init(stringValue:)) }

  private func decoder(_ key: any CodingKey) throws -> PropertyListValueDecoder {
    let name = key.stringValue
    guard let value = members[name] ?? missing?[name] else {
      throw DecodingError.keyNotFound(
        key, .init(codingPath: codingPath, debugDescription: "\(name) is missing"))
    }
    return PropertyListValueDecoder(
      value, at: path.appending(key), missing: missing?.inside(name))
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
  func superDecoder() throws -> any Decoder { try decoder(PlaceKey.super) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(key) }
}

struct UnkeyedValues: UnkeyedDecodingContainer {
  let values: [PropertyListValue]
  let path: CodingPath?
  /// Whether the elements' types may stand in for missing members.
  let isFilled: Bool
  private(set) var currentIndex = 0
  var codingPath: [any CodingKey] { path.keys }
  var count: Int? { values.count }
  var isAtEnd: Bool { currentIndex >= values.count }

  /// If decoding fails, the position stays.
  private mutating func next<T>(_ body: (PropertyListValueDecoder) throws -> T) throws -> T {
    let path = path.appending(PlaceKey(intValue: currentIndex))
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        T.self,
        .init(codingPath: path.keys, debugDescription: "the array has no more elements"))
    }
    let missing = isFilled ? MemberDefaults { nil } : nil
    let result = try body(
      PropertyListValueDecoder(values[currentIndex], at: path, missing: missing))
    currentIndex += 1
    return result
  }

  mutating func decodeNil() -> Bool { false }
  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    try next { try $0.decode(type) }
  }
  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try next { try $0.container(keyedBy: type) }
  }
  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next { try $0.unkeyedContainer() }
  }
  mutating func superDecoder() throws -> any Decoder { try next { $0 } }
}
