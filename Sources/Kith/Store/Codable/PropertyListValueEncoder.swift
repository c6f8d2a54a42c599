internal import KithCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Encodes any `Encodable` value as a property-list value, without a detour over
/// `PropertyListSerialization`, which takes a tenth of a second for a full store.
///
/// Keyed containers become dictionaries, unkeyed ones arrays. Nil in a keyed container leaves its
/// key out; elsewhere there is nothing that could stand for it, and encoding fails.
enum PropertyListValueEncoder {
  /// The property-list value of `value`.
  ///
  /// - Throws: `EncodingError`, or what the value's own `encode(to:)` throws.
  /// - Complexity: O(*n*) in the size of the value.
  static func encode(_ value: some Encodable) throws -> PropertyListValue {
    let node = EncodingNode()
    try node.encode(value, at: nil)
    return try node.finished(at: nil)
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

  /// Makes the value a dictionary; one that it is already stays.
  func becomeDictionary() {
    if case .dictionary = content { return }
    content = .dictionary([:])
  }

  /// Makes the value an array; one that it is already stays.
  func becomeArray() {
    if case .array = content { return }
    content = .array([])
  }

  /// Makes the value a scalar.
  func set(_ value: PropertyListValue) { content = .value(value) }

  /// The node of a member, the same one each time: a container may be asked for twice.
  func member(_ key: String) -> EncodingNode {
    guard case .dictionary(var members) = content else { return EncodingNode() }
    if let node = members[key] { return node }
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
  func encode<T: Encodable>(_ value: T, at path: CodingPath?) throws {
    guard path.depth <= PropertyListValue.maximumDepth else {
      throw EncodingError.refused(
        value, at: path,
        "it lies inside more than \(PropertyListValue.maximumDepth) arrays and dictionaries")
    }
    // What Foundation would encode as a number or a dictionary, but property lists know.
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

  /// The value, once it is whole.
  func finished(at path: CodingPath?) throws -> PropertyListValue {
    switch content {
    case .value(let value):
      return value
    case .array(let nodes):
      var values: [PropertyListValue] = []
      values.reserveCapacity(nodes.count)
      for (index, node) in nodes.enumerated() {
        values.append(try node.finished(in: path) { PlaceKey(index: index) })
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

  /// The value of a child; its path is made only where it is no scalar.
  private func finished(
    in path: CodingPath?, _ key: () -> PlaceKey?
  ) throws -> PropertyListValue {
    if case .value(let value) = content { return value }
    return try finished(at: key().map { path.appending($0) } ?? path)
  }
}

extension EncodingError {
  /// Why a value has no property-list value. The error holds the value itself only for `value`'s
  /// own program; ``KithError`` leaves it out.
  static func refused(_ value: Any?, at path: CodingPath?, _ reason: String) -> Self {
    .invalidValue(value as Any, .init(codingPath: path.keys, debugDescription: reason))
  }
}
