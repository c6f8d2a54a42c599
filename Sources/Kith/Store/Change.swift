public import KithCore

/// A change of what a store shows. Applied in order to the old view, changes give the new view.
public struct Change: Sendable, Hashable {
  /// Why a store shows something else.
  public enum Reason: String, Sendable, Hashable, CaseIterable {
    /// This program wrote; only sequences that ask for it see this.
    case ownWrite
    /// Another device wrote, or another program of this host; or what was written here could not
    /// be made durable and is undone.
    case serverChange
    /// The device's first pull ended.
    case initialSyncChange
    /// The quota changed what is shown, or refused what waited to be published.
    case quotaViolationChange
    /// The account is another.
    case accountChange
  }

  /// What one key showed and shows.
  public struct Item: Sendable, Hashable {
    /// The key.
    public var key: String
    /// What it showed; nil: nothing.
    public var old: PropertyListValue?
    /// What it shows; nil: nothing.
    public var new: PropertyListValue?

    /// Makes an item.
    public init(key: String, old: PropertyListValue?, new: PropertyListValue?) {
      self.key = key
      self.old = old
      self.new = new
    }
  }

  /// Why. Of changes that were joined, the reason that stands last in ``Reason``.
  public var reason: Reason
  /// The keys that show something else, with what they showed and show, in order of keys.
  public var items: [Item]
  /// Keys whose writes by this program lost, in order.
  public var superseded: [String]
  /// Whether several changes were joined, because they were not taken in time.
  public var isJoined: Bool

  /// The keys that show something else, in order.
  ///
  /// - Complexity: O(*n*).
  public var keys: [String] { items.map(\.key) }

  /// What a key showed and shows, each its default where it was nothing of the type; nil if the key
  /// shows the same as before.
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
