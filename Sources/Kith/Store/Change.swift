public import KithCore

/// A change of the values that a store shows.
///
/// Applied in order to the old view, changes give the new view.
public struct Change: Sendable, Hashable {
  /// The cause of a change.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// This program wrote. Only sequences that ask for own writes contain it.
    case ownWrite
    /// Another device or another program of this host wrote, or a write of this program was undone
    /// because it could not be made durable.
    case serverChange
    /// Joining or signing in brought the account's data.
    case initialSyncChange
    /// The quota changed the values shown, or refused a draft when it was to be published.
    case quotaViolationChange
    /// The store now belongs to another account.
    case accountChange
  }

  /// The old and the new value of one key.
  public struct Item: Sendable, Hashable {
    /// The key.
    public var key: String
    /// The value before; nil if the key showed none.
    public var old: PropertyListValue?
    /// The value now; nil if the key shows none.
    public var new: PropertyListValue?

    /// Makes an item.
    public init(key: String, old: PropertyListValue?, new: PropertyListValue?) {
      self.key = key
      self.old = old
      self.new = new
    }
  }

  /// The cause. Joined changes have the cause that is declared last in ``Reason``.
  public var reason: Reason
  /// The keys whose values changed, each with its old and new value, in order of keys.
  public var items: [Item]
  /// The keys of this program's writes that lost, in order.
  public var superseded: [String]
  /// Whether several changes were joined because the consumer did not take them in time.
  public var isJoined: Bool

  /// The keys whose values changed, in order.
  ///
  /// - Complexity: O(*n*).
  public var keys: [String] { items.map(\.key) }

  /// Returns a key's value before and after, or nil if the key's value did not change.
  ///
  /// If the key showed no value of its type, its default is returned.
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
    guard let item = items.first(where: { Key($0.key) == name }) else { return nil }
    return (key.value(in: item.old), key.value(in: item.new))
  }

  /// Makes a change.
  public init(reason: Reason, items: [Item], superseded: [String] = [], isJoined: Bool = false) {
    self.reason = reason
    self.items = items
    self.superseded = superseded
    self.isJoined = isJoined
  }
}

extension Change.Reason {
  init(_ reason: ChangeReason) {
    self =
      switch reason {
      case .serverChange: .serverChange
      case .initialSyncChange: .initialSyncChange
      case .quotaViolationChange: .quotaViolationChange
      case .accountChange: .accountChange
      }
  }

  /// The later of two, in the order of declaration.
  func joined(with other: Self) -> Self {
    Self.allCases.last { $0 == self || $0 == other } ?? self
  }
}
