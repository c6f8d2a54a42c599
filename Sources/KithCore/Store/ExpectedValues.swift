/// Values that a write expects the store to show at the moment when it is accepted.
package struct ExpectedValues: Codable, Hashable, Sendable {
  /// Nil: the key is missing.
  package var values: [Operation]
  /// Prefixes of keys: of the keys that begin with one, the store shows only those in ``values``.
  package var prefixes: [String]

  package init(values: [Operation] = [], prefixes: [String] = []) {
    self.values = values
    self.prefixes = prefixes
  }

  /// Expects nothing.
  package static let none = Self()

  package var isEmpty: Bool { values.isEmpty && prefixes.isEmpty }
}

/// A key that does not show the expected value.
package struct UnexpectedValue: Error, Hashable, Sendable {
  package var key: Key
  package var isExpected: Bool
  package var isShown: Bool
}

extension Replica {
  /// Throws for the first key that shows something else; a store that is not there shows nothing.
  ///
  /// - Complexity: O(1) for each value, O(*k*) in the shown keys for prefixes.
  package func check(
    _ expected: ExpectedValues, in store: StoreIdentifier
  ) throws(UnexpectedValue) {
    let shown = stores[store]?.state.shown ?? [:]
    for entry in expected.values {
      let key = Key(entry.key)
      let value = shown[key]?.value
      guard value != entry.value else { continue }
      throw UnexpectedValue(key: key, isExpected: entry.value != nil, isShown: value != nil)
    }
    guard !expected.prefixes.isEmpty else { return }
    let known = Set(expected.values.map { Key($0.key) })
    let unknown = shown.keys.filter { key in
      !known.contains(key)
        && expected.prefixes.contains { key.text.utf8.starts(with: $0.utf8) }
    }
    if let key = unknown.min() {
      throw UnexpectedValue(key: key, isExpected: false, isShown: true)
    }
  }
}
