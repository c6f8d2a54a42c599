package import KithCore

/// A value that a program builds step by step. Each step is bounded: a container that is put into
/// itself forty times would take a terabyte to print.
package struct GrowingValue: Sendable {
  /// As ``Extent/bytes`` counts them.
  package static let largestBytes = 64 << 20

  /// Why a step is refused. Nothing has changed.
  package enum Refusal: Error, Equatable {
    case notAnArray
    case notADictionary
    /// A dictionary holds one of canonically equivalent names.
    case equivalentName
    /// More than ``PropertyListValue/maximumDepth``.
    case tooDeep
    case tooLarge
  }

  package private(set) var value: PropertyListValue
  /// Nil: not needed so far.
  private var knownExtent: Extent?

  package init(_ value: PropertyListValue) {
    self.value = value
  }

  private var extent: Extent { knownExtent ?? Extent(of: value) }

  /// - Complexity: O(1), but O(*n*) in the size of a value that was not built so.
  package mutating func append(_ element: Self) throws(Refusal) {
    guard case .array(var elements) = value else { throw .notAnArray }
    knownExtent = try extent.adding(element.extent)
    // So that the elements are not copied.
    value = .bool(false)
    elements.append(element.value)
    value = .array(elements)
  }

  /// Sets a member; nil removes it.
  ///
  /// - Complexity: O(*m*) in the size of the member that it replaces; otherwise as ``append(_:)``.
  package mutating func put(_ member: Self?, _ name: String) throws(Refusal) {
    guard case .dictionary(var members) = value else { throw .notADictionary }
    var extent = extent
    if let index = members.index(forKey: name) {
      guard members[index].key.utf8.elementsEqual(name.utf8) else { throw .equivalentName }
      extent.bytes -= Extent(of: members[index].value).named(name).bytes
    }
    if let member { extent = try extent.adding(member.extent.named(name)) }
    knownExtent = extent
    value = .bool(false)
    members[name] = member?.value
    value = .dictionary(members)
  }
}

/// How much a value takes when it is written out.
private struct Extent {
  var bytes = 16
  /// The number of containers inside each other; 0: a scalar. It may stay too large after a part was
  /// replaced.
  var depth = 0

  init(of value: PropertyListValue) {
    switch value {
    case .string(let text): bytes += text.utf8.count
    case .data(let data): bytes += data.count
    case .array(let elements):
      depth = 1
      for element in elements { include(Extent(of: element)) }
    case .dictionary(let members):
      depth = 1
      for member in members { include(Extent(of: member.value).named(member.key)) }
    default: break
    }
  }

  /// As a member of a dictionary.
  func named(_ name: String) -> Self {
    var member = self
    member.bytes += name.utf8.count
    return member
  }

  private mutating func include(_ element: Self) {
    bytes += element.bytes
    depth = max(depth, element.depth + 1)
  }

  func adding(_ element: Self) throws(GrowingValue.Refusal) -> Self {
    var sum = self
    sum.include(element)
    guard sum.depth <= PropertyListValue.maximumDepth else { throw .tooDeep }
    guard sum.bytes <= GrowingValue.largestBytes else { throw .tooLarge }
    return sum
  }
}
