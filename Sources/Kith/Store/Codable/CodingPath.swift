internal import KithCore

/// The path of a value inside the encoded or decoded value, as a list from the inside out. Each
/// step costs one node; only errors build the whole path.
final class CodingPath {
  private let parent: CodingPath?
  private let key: any CodingKey
  /// The number of steps on this path.
  let depth: Int

  init(_ parent: CodingPath?, _ key: any CodingKey) {
    self.parent = parent
    self.key = key
    depth = (parent?.depth ?? 0) + 1
  }

  /// The keys from the outermost to this one.
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
  /// The keys from the outermost on; none at the top.
  var keys: [any CodingKey] { self?.keys ?? [] }

  /// The number of steps on this path.
  var depth: Int { self?.depth ?? 0 }

  /// Returns this path with one more step.
  func appending(_ key: any CodingKey) -> CodingPath { CodingPath(self, key) }
}

/// The coding key of an array element, or of the member that `superEncoder()` writes.
struct PlaceKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  /// Makes the key of the element at an index.
  init(index: Int) {
    stringValue = "\(index)"
    intValue = index
  }

  init?(stringValue: String) {
    self.stringValue = stringValue
    intValue = nil
  }

  init?(intValue: Int) { self.init(index: intValue) }

  private init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  /// The member that holds a superclass's value.
  static let `super` = PlaceKey("super")
}
