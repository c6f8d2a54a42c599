internal import FoundationEssentials
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
    let position = path.isEmpty ? "" : "at \(path): "
    self.init(.unsupportedValue, "\(what): \(position)\(context.reason).")
  }
}

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
  func superEncoder() -> any Encoder { encoder(PathKey.super) }
  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }
}

struct UnkeyedNodes: UnkeyedEncodingContainer {
  let node: EncodingNode
  let path: CodingPath?
  var codingPath: [any CodingKey] { path.keys }
  var count: Int { node.count }

  private func encoder() -> NodeEncoder {
    let key = PathKey(intValue: node.count)
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

/// A part of a value that is being encoded. `PropertyListSerialization` would take a tenth of a second
/// for a full store.
///
/// Nil leaves out its key in a keyed container; elsewhere encoding nil fails.
final class EncodingNode {
  private enum Content {
    case nothing
    case value(PropertyListValue)
    case array([EncodingNode])
    case dictionary([String: EncodingNode])
  }

  private var content = Content.nothing

  var count: Int {
    if case .array(let nodes) = content { nodes.count } else { 0 }
  }

  func becomeDictionary() {
    if case .dictionary = content { return }
    content = .dictionary([:])
  }

  func becomeArray() {
    if case .array = content { return }
    content = .array([])
  }

  func set(_ value: PropertyListValue) { content = .value(value) }

  /// Returns a member's node, the same at each call: a container may be requested twice.
  func member(_ key: String) -> EncodingNode {
    guard case .dictionary(var members) = content else { return EncodingNode() }
    if let node = members[key] { return node }
    let node = EncodingNode()
    content = .nothing
    members[key] = node
    content = .dictionary(members)
    return node
  }

  func append() -> EncodingNode {
    guard case .array(var elements) = content else { return EncodingNode() }
    let node = EncodingNode()
    content = .nothing
    elements.append(node)
    content = .array(elements)
    return node
  }

  func encode<T: Encodable>(_ value: T, at path: CodingPath?) throws {
    guard path.depth <= PropertyListValue.maximumDepth else {
      throw EncodingError.refused(
        value, at: path,
        "it lies inside more than \(PropertyListValue.maximumDepth) arrays and dictionaries")
    }
    // Foundation would encode these as numbers or dictionaries.
    if T.self == Date.self, let date = value as? Date {
      set(.date(date))
    } else if T.self == Data.self, let data = value as? Data {
      set(.data(data))
    } else if T.self == URL.self, let url = value as? URL {
      set(.string(url.absoluteString))
    } else if T.self == PropertyListValue.self, let value = value as? PropertyListValue {
      set(value)
    } else {
      try value.encode(to: NodeEncoder(node: self, path: path))
    }
  }

  func finished(at path: CodingPath?) throws -> PropertyListValue {
    switch content {
    case .value(let value):
      return value
    case .array(let nodes):
      var values: [PropertyListValue] = []
      values.reserveCapacity(nodes.count)
      for (index, node) in nodes.enumerated() {
        values.append(try node.finished(in: path) { PathKey(intValue: index) })
      }
      return .array(values)
    case .dictionary(let members):
      var values: [String: PropertyListValue] = [:]
      values.reserveCapacity(members.count)
      for (key, node) in members {
        values[key] = try node.finished(in: path) { PathKey(stringValue: key) }
      }
      return .dictionary(values)
    case .nothing:
      throw EncodingError.refused(nil, at: path, "nil, or nothing at all, has no value here")
    }
  }

  /// Builds the child's path only if it is no scalar.
  private func finished(
    in path: CodingPath?, _ key: () -> PathKey
  ) throws -> PropertyListValue {
    if case .value(let value) = content { return value }
    return try finished(at: path.appending(key()))
  }
}

extension EncodingError {
  /// The error holds the value, for the program alone; ``KithError`` leaves it out.
  static func refused(_ value: Any?, at path: CodingPath?, _ reason: String) -> Self {
    .invalidValue(value as Any, .init(codingPath: path.keys, debugDescription: reason))
  }
}

/// A value's path inside the coded value, as a list from the inside out. Each level costs one object;
/// only errors build the whole path.
final class CodingPath {
  private let parent: CodingPath?
  private let key: any CodingKey
  let depth: Int

  init(_ parent: CodingPath?, _ key: any CodingKey) {
    self.parent = parent
    self.key = key
    depth = (parent?.depth ?? 0) + 1
  }

  /// The keys, outermost first.
  var keys: [any CodingKey] {
    var keys: [any CodingKey] = []
    keys.reserveCapacity(depth)
    var next: CodingPath? = self
    while let current = next {
      keys.append(current.key)
      next = current.parent
    }
    return keys.reversed()
  }
}

extension CodingPath? {
  var keys: [any CodingKey] { self?.keys ?? [] }

  var depth: Int { self?.depth ?? 0 }

  func appending(_ key: any CodingKey) -> CodingPath { CodingPath(self, key) }
}

/// The key of an array element, or of the member that `superEncoder()` writes.
struct PathKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init(intValue: Int) {
    stringValue = "\(intValue)"
    self.intValue = intValue
  }

  /// The member that holds a superclass's value.
  static let `super` = PathKey(stringValue: "super")
}
