internal import KithCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Encodes any `Encodable` value as a property-list value. `PropertyListSerialization` would take a
/// tenth of a second for a full store.
///
/// Keyed containers become dictionaries, unkeyed containers become arrays. In a keyed container,
/// nil leaves its key out. Elsewhere nil has no representation, so encoding fails.
package enum PropertyListValueEncoder {
  /// Returns the property-list value of `value`.
  ///
  /// - Throws: `EncodingError`, or the error that the value's own `encode(to:)` throws.
  /// - Complexity: O(*n*) in the size of the value.
  package static func encode(_ value: some Encodable) throws -> PropertyListValue {
    let node = EncodingNode()
    try node.encode(value, at: nil)
    return try node.finished(at: nil)
  }
}

/// One value while it is being encoded.
final class EncodingNode {
  /// The kind of value that the calls so far have made.
  private enum Content {
    case nothing
    case value(PropertyListValue)
    case array([EncodingNode])
    case dictionary([String: EncodingNode])
  }

  private var content = Content.nothing

  /// The number of elements of an unkeyed container.
  var count: Int {
    if case .array(let nodes) = content { nodes.count } else { 0 }
  }

  /// Makes the value a dictionary, unless it is one already.
  func becomeDictionary() {
    if case .dictionary = content { return }
    content = .dictionary([:])
  }

  /// Makes the value an array, unless it is one already.
  func becomeArray() {
    if case .array = content { return }
    content = .array([])
  }

  /// Makes the value a scalar.
  func set(_ value: PropertyListValue) { content = .value(value) }

  /// Returns the node of a member, always the same one, because a container may be requested twice.
  func member(_ key: String) -> EncodingNode {
    guard case .dictionary(var members) = content else { return EncodingNode() }
    if let node = members[key] { return node }
    let node = EncodingNode()
    content = .nothing
    members[key] = node
    content = .dictionary(members)
    return node
  }

  /// Adds an element and returns its node.
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
    // Foundation would encode these as numbers or dictionaries; property lists have types for them.
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

  /// Returns the finished value.
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

  /// Returns the finished value of a child. Its path is made only if it is not a scalar.
  private func finished(
    in path: CodingPath?, _ key: () -> PlaceKey?
  ) throws -> PropertyListValue {
    if case .value(let value) = content { return value }
    return try finished(at: key().map { path.appending($0) } ?? path)
  }
}

extension EncodingError {
  /// Makes the error for a value that cannot be encoded. It holds the value, for the program alone;
  /// ``KithError`` leaves the value out.
  static func refused(_ value: Any?, at path: CodingPath?, _ reason: String) -> Self {
    .invalidValue(value as Any, .init(codingPath: path.keys, debugDescription: reason))
  }
}
