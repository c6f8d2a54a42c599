internal import KithCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Encodes any `Encodable` value as a property-list value.
///
/// Keyed containers become dictionaries, unkeyed ones arrays. Nil in a keyed container leaves its
/// key out; elsewhere there is nothing that could stand for it, and encoding fails.
enum PropertyListValueEncoder {
  /// The property-list value of `value`.
  ///
  /// - Throws: `EncodingError`.
  static func encode(_ value: some Encodable) throws -> PropertyListValue {
    let node = EncodingNode()
    try node.encode(value, path: [])
    return try node.finished(path: [])
  }
}

/// One value while it is being encoded.
final class EncodingNode {
  /// What the value has turned out to be so far.
  private enum Content {
    case nothing
    case value(PropertyListValue)
    case array([EncodingNode])
    case dictionary([String: EncodingNode])
  }

  private var content = Content.nothing

  /// How many elements an unkeyed container has.
  var count: Int {
    if case .array(let nodes) = content { nodes.count } else { 0 }
  }

  /// Makes the value a dictionary.
  func becomeDictionary() {
    if case .dictionary = content { return }
    content = .dictionary([:])
  }

  /// Makes the value an array.
  func becomeArray() {
    if case .array = content { return }
    content = .array([])
  }

  /// Makes the value a scalar.
  func set(_ value: PropertyListValue) { content = .value(value) }

  /// The node of a member.
  func member(_ key: String) -> EncodingNode {
    guard case .dictionary(var members) = content else { return EncodingNode() }
    let node = EncodingNode()
    content = .nothing
    members[key] = node
    content = .dictionary(members)
    return node
  }

  /// The node of another element.
  func append() -> EncodingNode {
    guard case .array(var elements) = content else { return EncodingNode() }
    let node = EncodingNode()
    content = .nothing
    elements.append(node)
    content = .array(elements)
    return node
  }

  /// Encodes a value here.
  func encode(_ value: some Encodable, path: [any CodingKey]) throws {
    switch value {
    case let value as PropertyListValue: set(value)
    case let value as Date: set(.date(value))
    case let value as Data: set(.data(value))
    case let value as URL: set(.string(value.absoluteString))
    default: try value.encode(to: NodeEncoder(node: self, codingPath: path))
    }
  }

  /// The value, once it is whole.
  func finished(path: [any CodingKey]) throws -> PropertyListValue {
    switch content {
    case .value(let value): return value
    case .array(let nodes): return .array(try nodes.map { try $0.finished(path: path) })
    case .dictionary(let members):
      return .dictionary(try members.mapValues { try $0.finished(path: path) })
    case .nothing:
      throw EncodingError.invalidValue(
        Any?.none as Any,
        .init(codingPath: path, debugDescription: "nil, or nothing at all, has no value here"))
    }
  }
}

/// The encoder that a value sees.
struct NodeEncoder: Encoder, SingleValueEncodingContainer {
  let node: EncodingNode
  let codingPath: [any CodingKey]
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.becomeDictionary()
    return KeyedEncodingContainer(KeyedNodes<Key>(node: node, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.becomeArray()
    return UnkeyedNodes(node: node, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  func encodeNil() throws {
    throw EncodingError.invalidValue(
      Any?.none as Any, .init(codingPath: codingPath, debugDescription: "nil has no value"))
  }
  func encode(_ value: Bool) { node.set(.bool(value)) }
  func encode(_ value: String) { node.set(.string(value)) }
  func encode(_ value: Double) { node.set(.double(value)) }
  func encode(_ value: Float) { node.set(.double(Double(value))) }
  func encode(_ value: Int) throws { try integer(value) }
  func encode(_ value: Int8) throws { try integer(value) }
  func encode(_ value: Int16) throws { try integer(value) }
  func encode(_ value: Int32) throws { try integer(value) }
  func encode(_ value: Int64) throws { try integer(value) }
  func encode(_ value: UInt) throws { try integer(value) }
  func encode(_ value: UInt8) throws { try integer(value) }
  func encode(_ value: UInt16) throws { try integer(value) }
  func encode(_ value: UInt32) throws { try integer(value) }
  func encode(_ value: UInt64) throws { try integer(value) }
  func encode(_ value: some Encodable) throws { try node.encode(value, path: codingPath) }

  private func integer(_ value: some BinaryInteger) throws {
    guard let integer = Int64(exactly: value) else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: codingPath, debugDescription: "the integer is beyond 64 bits"))
    }
    node.set(.integer(integer))
  }
}

/// The members of a dictionary while it is being encoded.
struct KeyedNodes<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: EncodingNode
  let codingPath: [any CodingKey]

  private func encoder(_ key: any CodingKey) -> NodeEncoder {
    NodeEncoder(node: node.member(key.stringValue), codingPath: codingPath + [key])
  }

  func encodeNil(forKey key: Key) {}
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
  func superEncoder() -> any Encoder {
    NodeEncoder(node: node.member("super"), codingPath: codingPath)
  }
  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
}

/// The elements of an array while it is being encoded.
struct UnkeyedNodes: UnkeyedEncodingContainer {
  let node: EncodingNode
  let codingPath: [any CodingKey]
  var count: Int { node.count }

  private func encoder() -> NodeEncoder {
    NodeEncoder(node: node.append(), codingPath: codingPath)
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
