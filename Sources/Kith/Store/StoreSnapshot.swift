public import KithCore

/// The values that a store showed at one moment.
///
/// ```swift
/// let now = store.snapshot
/// draw(now[.theme], now[.fontSize])   // both before a transaction, or both after it
/// ```
public struct StoreSnapshot: Sendable, Hashable {
  /// All shown values, by ``KeyValueStore/Key``, which compares bytes.
  public let dictionary: [Key: PropertyListValue]

  /// Returns the value that a key showed, or nil.
  ///
  /// - Complexity: O(1).
  public func value(forKey key: String) -> PropertyListValue? { dictionary[Key(key)] }

  /// Returns a key's value, or its default if it showed no value of its type.
  ///
  /// - Complexity: O(1) for scalars, otherwise O(*n*) in the value's size.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    key.value(in: value(forKey: key.name))
  }

  /// Returns the values of one type whose keys begin with a prefix.
  ///
  /// ```swift
  /// let tabs = store.snapshot.values(prefix: "tab.", as: URL.self)
  /// ```
  ///
  /// - Parameters:
  ///   - prefix: The start of the keys, compared as UTF-8 bytes; empty selects every key.
  ///   - type: The type of the values, by default any. Other values are left out.
  /// - Returns: The values, by their whole keys.
  /// - Complexity: O(*k*) in the store's keys, and O(*n*) in the size of the values returned.
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
  func hasPrefix(_ prefix: String) -> Bool { text.utf8.starts(with: prefix.utf8) }
}
