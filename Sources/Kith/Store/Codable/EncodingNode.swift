internal import FoundationEssentials
internal import KithCore

/// A place of an encoded value, while it is encoded. `PropertyListSerialization` would take a tenth
/// of a second for a full store.
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
        values.append(try node.finished(in: path) { PlaceKey(intValue: index) })
      }
      return .array(values)
    case .dictionary(let members):
      var values: [String: PropertyListValue] = [:]
      values.reserveCapacity(members.count)
      for (key, node) in members {
        values[key] = try node.finished(in: path) { PlaceKey(stringValue: key) }
      }
      return .dictionary(values)
    case .nothing:
      throw EncodingError.refused(nil, at: path, "nil, or nothing at all, has no value here")
    }
  }

  /// Builds the child's path only if it is no scalar.
  private func finished(
    in path: CodingPath?, _ key: () -> PlaceKey
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
