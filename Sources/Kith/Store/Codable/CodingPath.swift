internal import KithCore

/// A value's place inside the coded value, as a list from the inside out. A step costs one node;
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
    var step: CodingPath? = self
    while let current = step {
      keys.append(current.key)
      step = current.parent
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
struct PlaceKey: CodingKey {
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
  static let `super` = PlaceKey(stringValue: "super")
}
