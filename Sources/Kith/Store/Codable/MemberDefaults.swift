internal import KithCore

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

  /// Those of the dictionary that is a member.
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
  /// at its place.
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
      var places: [PropertyListValue: [Int]] = [:]
      for (place, element) in known.enumerated().reversed() {
        places[element, default: []].append(place)
      }
      var rest = Set(known.indices)
      var changed: [Int] = []
      for (index, element) in elements.enumerated() {
        let isInPlace = rest.contains(index) && known[index] == element
        while let last = places[element]?.last, !rest.contains(last) {
          places[element]?.removeLast()
        }
        guard let place = isInPlace ? index : places[element]?.last else {
          changed.append(index)
          continue
        }
        rest.remove(place)
        elements[index] = element.keepingMembers(of: stored[place], readAs: known[place])
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
