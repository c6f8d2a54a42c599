package import KithCore

/// A property list as its file has it: nothing is dropped, replaced or rounded.
package indirect enum PropertyListNode {
  /// Nested containers. A store's own limit is lower.
  package static let maximumDepth = 512

  case value(PropertyListValue)
  /// Damaged, or without a counterpart among values; for people, such as "`AAE` is not base64".
  case invalid(String)
  case array([PropertyListNode])
  /// In the order of the file. A key may occur twice.
  case dictionary([(key: String, node: PropertyListNode)])

  package func value() throws(NotAValue) -> PropertyListValue {
    switch self {
    case .value(let value): return value
    case .invalid(let reason): throw NotAValue(reason)
    case .array(let nodes):
      var values: [PropertyListValue] = []
      for (index, node) in nodes.enumerated() {
        do throws(NotAValue) { values.append(try node.value()) } catch {
          throw error.inside("[\(index)]")
        }
      }
      return .array(values)
    case .dictionary(let members):
      return .dictionary(try .distinct(members) { node throws(NotAValue) in try node.value() })
    }
  }
}

/// A property list that cannot be read as a whole; for people.
package struct PropertyListError: Error, CustomStringConvertible {
  package let description: String

  init(_ description: String) { self.description = description }
}

/// A part of a file or text that no value can hold as it is.
package struct NotAValue: Error, Equatable, CustomStringConvertible {
  /// Such as `.window.frames[2]`; empty for the value itself.
  package private(set) var path = ""
  package let reason: String

  package init(_ reason: String) { self.reason = reason }

  /// A number of which a double does not keep all digits.
  package static func rounded(_ text: String, to double: Double) -> Self {
    Self(
      "the number \(text.prefix(40)) has more digits than a double keeps; write \(double), the "
        + "nearest one, or a string")
  }

  package var description: String { path.isEmpty ? reason : "at \(path): \(reason)" }

  package func inside(_ step: String) -> NotAValue {
    var copy = self
    copy.path = step + path
    return copy
  }
}

extension [String: PropertyListValue] {
  /// Throws if two keys are the same, or canonically equivalent: a dictionary holds only one of them.
  package static func distinct<Node>(
    _ members: [(key: String, node: Node)], _ value: (Node) throws(NotAValue) -> PropertyListValue
  ) throws(NotAValue) -> Self {
    var values: Self = [:]
    for (key, node) in members {
      do throws(NotAValue) {
        if let index = values.index(forKey: key) {
          let isSame = values[index].key.utf8.elementsEqual(key.utf8)
          throw NotAValue(
            isSame
              ? "the key occurs twice in one dictionary"
              : "the key has a canonically equivalent one beside it, and a dictionary holds only one of "
                + "the two")
        }
        values[key] = try value(node)
      } catch {
        throw error.inside(".\(key)")
      }
    }
    return values
  }
}
