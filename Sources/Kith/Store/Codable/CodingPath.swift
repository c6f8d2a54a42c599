internal import KithCore

/// Where a value lies within the one that is encoded or decoded, as a list from the inside out: a
/// step costs one node, and only errors spell the whole path out.
final class CodingPath {
  private let parent: CodingPath?
  private let key: any CodingKey
  /// How many steps lead here.
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

  /// How many steps lead here.
  var depth: Int { self?.depth ?? 0 }

  /// One step further in.
  func appending(_ key: any CodingKey) -> CodingPath { CodingPath(self, key) }
}

/// The place of an element in an array, or of what `superEncoder()` writes.
struct PlaceKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  /// The element at an index.
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

  /// The member that holds what a superclass encodes.
  static let `super` = PlaceKey("super")
}
