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
  func superDecoder() throws -> any Decoder { try decoder(PathKey.super) }
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
    let path = path.appending(PathKey(intValue: currentIndex))
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

/// The values that stand in for members that a stored dictionary lacks. A default is encoded only if
/// a member is missing.
final class MemberDefaults {
  private let encode: () -> PropertyListValue?
  /// Asked if this has no such member.
  private let next: MemberDefaults?
  private lazy var members: [String: PropertyListValue] = {
    if case .dictionary(let members) = encode() { members } else { [:] }
  }()

  init(before next: MemberDefaults? = nil, _ encode: @escaping () -> PropertyListValue?) {
    self.encode = encode
    self.next = next
  }

  subscript(name: String) -> PropertyListValue? { members[name] ?? next?[name] }

  /// The defaults within a member that is a dictionary.
  func inside(_ name: String) -> MemberDefaults { MemberDefaults { self[name] } }

  /// These, then the type's own.
  func of<Value>(_ type: Value.Type) -> MemberDefaults {
    guard let type = type as? any StoreValue.Type else { return self }
    return MemberDefaults(before: MemberDefaults { type.encodedMemberDefaults }) {
      .dictionary(self.members)
    }
  }
}

extension StoreValue {
  fileprivate static var encodedMemberDefaults: PropertyListValue? {
    try? memberDefaults?.storedValue()
  }
}

extension PropertyListValue {
  /// Adds the members that a stored value has and its type does not know, because a newer program
  /// wrote them. `known` is the encoding of the value that the type reads from `stored`.
  ///
  /// An element of an array keeps them if it equals one that was there, or is changed in one member
  /// at the same index.
  ///
  /// - Complexity: O(*n*) in the size of the values.
  func keepingMembers(of stored: PropertyListValue, readAs known: PropertyListValue) -> Self {
    switch (self, stored, known) {
    case (.dictionary(var members), .dictionary(let stored), .dictionary(let known)):
      for (name, value) in stored {
        if let read = known[name] {
          members[name] = members[name]?.keepingMembers(of: value, readAs: read)
        } else if members[name] == nil {
          members[name] = value
        }
      }
      return .dictionary(members)
    case (.array(var elements), .array(let stored), .array(let known))
    where stored.count == known.count && stored != known:
      var positions: [PropertyListValue: [Int]] = [:]
      for (position, element) in known.enumerated().reversed() {
        positions[element, default: []].append(position)
      }
      var rest = Set(known.indices)
      var changed: [Int] = []
      for (index, element) in elements.enumerated() {
        let isInPlace = rest.contains(index) && known[index] == element
        while let last = positions[element]?.last, !rest.contains(last) {
          positions[element]?.removeLast()
        }
        guard let position = isInPlace ? index : positions[element]?.last else {
          changed.append(index)
          continue
        }
        rest.remove(position)
        elements[index] = element.keepingMembers(of: stored[position], readAs: known[position])
      }
      guard elements.count == stored.count else { return .array(elements) }
      for index in changed where rest.contains(index) {
        guard elements[index].differsInOneMember(from: known[index]) else { continue }
        elements[index] = elements[index].keepingMembers(of: stored[index], readAs: known[index])
      }
      return .array(elements)
    default: return self
    }
  }

  private func differsInOneMember(from other: PropertyListValue) -> Bool {
    guard case (.dictionary(let one), .dictionary(let other)) = (self, other) else { return false }
    return Set(one.keys).union(other.keys).count { one[$0] != other[$0] } == 1
  }

  /// Whether a member may be unknown to a type.
  var holdsDictionary: Bool {
    switch self {
    case .dictionary: true
    case .array(let elements): elements.contains(where: \.holdsDictionary)
    default: false
    }
  }
}
