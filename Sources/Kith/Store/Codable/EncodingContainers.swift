internal import KithCore

/// The encoder that `encode(to:)` receives, also for a single value.
struct NodeEncoder: Encoder, SingleValueEncodingContainer {
  let node: EncodingNode
  let path: CodingPath?
  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeDictionary()
    return KeyedEncodingContainer(KeyedNodes<Key>(node: node, path: path))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeArray()
    return UnkeyedNodes(node: node, path: path)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func encodeNil() throws {
    throw EncodingError.refused(nil, at: path, "nil has no value here")
  }
  func encode(_ value: Bool) { node.set(.bool(value)) }
  func encode(_ value: String) { node.set(.string(value)) }
  func encode(_ value: Double) { node.set(.double(value)) }
  func encode(_ value: Float) { node.set(.double(Double(value))) }
  func encode(_ value: some Encodable & FixedWidthInteger) throws { try integer(value) }
  // Not generic, because the standard library's own functions, which only throw, would be chosen.
  func encode(_ value: Int128) throws { try integer(value) }
  func encode(_ value: UInt128) throws { try integer(value) }
  func encode(_ value: some Encodable) throws { try node.encode(value, at: path) }

  private func integer(_ value: some BinaryInteger) throws {
    guard let integer = Int64(exactly: value) else {
      throw EncodingError.refused(value, at: path, "the integer is beyond 64 bits with a sign")
    }
    node.set(.integer(integer))
  }
}

struct KeyedNodes<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: EncodingNode
  let path: CodingPath?
  var codingPath: [any CodingKey] { path.keys }

  private func encoder(_ key: any CodingKey) -> NodeEncoder {
    NodeEncoder(node: node.member(key.stringValue), path: path.appending(key))
  }

  func encodeNil(forKey key: Key) {}
  func encode(_ value: Bool, forKey key: Key) { node.member(key.stringValue).set(.bool(value)) }
  func encode(_ value: String, forKey key: Key) {
    node.member(key.stringValue).set(.string(value))
  }
  func encode(_ value: Double, forKey key: Key) {
    node.member(key.stringValue).set(.double(value))
  }
  func encode(_ value: Int, forKey key: Key) {
    node.member(key.stringValue).set(.integer(Int64(value)))
  }
  func encode(_ value: some Encodable, forKey key: Key) throws {
    try encoder(key).encode(value)
  }
  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    encoder(key).container(keyedBy: keyType)
  }
  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder(key).unkeyedContainer()
  }
  func superEncoder() -> any Encoder { encoder(PlaceKey.super) }
  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
}

struct UnkeyedNodes: UnkeyedEncodingContainer {
  let node: EncodingNode
  let path: CodingPath?
  var codingPath: [any CodingKey] { path.keys }
  var count: Int { node.count }

  private func encoder() -> NodeEncoder {
    let key = PlaceKey(intValue: node.count)
    return NodeEncoder(node: node.append(), path: path.appending(key))
  }

  func encodeNil() throws { try encoder().encodeNil() }
  func encode(_ value: some Encodable) throws { try encoder().encode(value) }
  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    encoder().container(keyedBy: keyType)
  }
  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder().unkeyedContainer() }
  func superEncoder() -> any Encoder { encoder() }
}
