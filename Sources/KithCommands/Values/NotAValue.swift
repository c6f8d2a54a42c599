import KithCore

/// A part of a file or text that no value can hold as it is.
struct NotAValue: Error, Equatable, CustomStringConvertible {
  /// Such as `.window.frames[2]`; empty for the value itself.
  private(set) var path = ""
  let reason: String

  init(_ reason: String) { self.reason = reason }

  var description: String { path.isEmpty ? reason : "at \(path): \(reason)" }

  func inside(_ step: String) -> NotAValue {
    var copy = self
    copy.path = step + path
    return copy
  }
}

extension [String: PropertyListValue] {
  /// Throws if two keys are the same, or canonically equivalent: a dictionary holds only one of them.
  static func distinct<Node>(
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
