public import KithCore

/// What a store showed at one moment; it never changes.
///
/// ```swift
/// let now = store.snapshot
/// draw(now[.theme], now[.fontSize])   // both before a transaction, or both after it
/// ```
public struct StoreSnapshot: Sendable, Hashable {
  /// All that was shown. By ``Key``, since a dictionary of `String` would take canonically equivalent
  /// keys for one.
  public let dictionary: [Key: PropertyListValue]

  init(values: [Key: PropertyListValue]) {
    dictionary = values
  }

  /// What a key showed, or nil.
  ///
  /// - Complexity: O(1).
  public func value(forKey key: String) -> PropertyListValue? { dictionary[Key(key)] }

  /// What a key showed, or its default where it showed nothing of the type.
  ///
  /// - Complexity: O(1) for scalars, otherwise O(*n*) in the size of the value.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    key.value(in: value(forKey: key.name))
  }

  /// The values of one type of all keys that begin with a prefix. A value of another type is left
  /// out.
  ///
  /// ```swift
  /// let tabs = store.snapshot.values(prefix: "tab.", as: URL.self)
  /// ```
  ///
  /// - Parameters:
  ///   - prefix: What the keys begin with, compared as UTF-8 bytes; the empty one is every key's.
  ///   - type: The type of the values; without it they are as they are stored.
  /// - Returns: The values by their whole keys.
  /// - Complexity: O(*k*) in the keys of the store, and O(*n*) in the size of the values returned.
  public func values<Value: StoreValue>(
    prefix: String, as type: Value.Type = PropertyListValue.self
  ) -> [Key: Value] {
    var values: [Key: Value] = [:]
    for (key, value) in dictionary where key.hasPrefix(prefix) {
      values[key] = Value(propertyListValue: value)
    }
    return values
  }
}

extension Key {
  /// Whether the key begins with the prefix's bytes.
  func hasPrefix(_ prefix: String) -> Bool { text.utf8.starts(with: prefix.utf8) }
}
