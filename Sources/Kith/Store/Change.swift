public import KithCore

extension KeyValueStore {
  /// A change of the values that a store shows.
  public struct Change: Sendable, Hashable {
    /// The old and the new value of one key.
    public struct Item: Sendable, Hashable {
      /// The key.
      public var key: Key
      /// The value before; nil if the key showed none.
      public var old: PropertyListValue?
      /// The value now; nil if the key shows none.
      public var new: PropertyListValue?
    }

    /// The cause. Joined changes have the cause that ``ChangeReason`` declares last.
    public var reason: ChangeReason
    /// The changed keys, each with its old and new value, in order.
    public var items: [Item]
    /// The keys of this program's writes that lost, in order.
    public var superseded: [Key] = []
    /// Whether changes were joined because the consumer was slow.
    public var isJoined = false

    /// The changed keys, in order.
    ///
    /// - Complexity: O(*n*).
    public var keys: [Key] { items.map(\.key) }

    /// Returns a key's old and new value, or nil if it did not change.
    ///
    /// The default stands in if the key showed no value of its type.
    ///
    /// ```swift
    /// for await change in store.changes {
    ///   if let theme = change[.theme] { animate(from: theme.old, to: theme.new) }
    /// }
    /// ```
    ///
    /// - Complexity: O(*n*) in the keys of the change.
    public subscript<Value>(key: StoreKey<Value>) -> (old: Value, new: Value)? {
      let name = Key(key.name)
      guard let item = items.first(where: { $0.key == name }) else { return nil }
      return (key.value(in: item.old), key.value(in: item.new))
    }
  }
}

extension ChangeReason {
  func joined(with other: Self) -> Self {
    Self.allCases.last { $0 == self || $0 == other } ?? self
  }
}
