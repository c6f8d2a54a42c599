internal import KithCore

/// The values of several keys; see `KeyValueStore.values(for:)`.
///
/// It ends when its task is cancelled or the node is closed.
public struct StoreTuples<each Value: StoreValue & Equatable>: AsyncSequence, Sendable {
  /// A value for each key, in the order of the keys.
  public typealias Element = (repeat each Value)

  /// Takes the values.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let keys: (repeat StoreKey<each Value>)
    private let names: Set<Key>
    /// What the keys show, of all that the changes told.
    private var shown: [Key: PropertyListValue]
    private var last: (repeat each Value)?
    private var changes: StoreChanges.AsyncIterator

    init(_ tuples: StoreTuples) {
      keys = tuples.keys
      changes = tuples.changes.makeAsyncIterator()
      var names: Set<Key> = []
      for key in repeat each tuples.keys { names.insert(Key(key.name)) }
      self.names = names
      shown = tuples.current.filter { names.contains($0.key) }
    }

    /// The next values of which one at least differs from those before, or nil at the end.
    public mutating func next() async -> Element? {
      await next(isolation: #isolation)
    }

    /// The next values of which one at least differs from those before, or nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Element? {
      guard let before = last else {
        let first = take()
        return first
      }
      while let change = await changes.next(isolation: actor) {
        var isTouched = false
        for item in change.items where names.contains(Key(item.key)) {
          shown[Key(item.key)] = item.new
          isTouched = true
        }
        guard isTouched else { continue }
        let values = take()
        for (old, new) in repeat (each before, each values) {
          if old != new { return values }
        }
      }
      return nil
    }

    private mutating func take() -> Element {
      let shown = shown
      let values = (repeat Self.value(of: each keys, in: shown))
      last = values
      return values
    }

    private static func value<One: StoreValue>(
      of key: StoreKey<One>, in shown: [Key: PropertyListValue]
    ) -> One {
      shown[Key(key.name)].flatMap(One.init(propertyListValue:)) ?? key.defaultValue
    }
  }

  let keys: (repeat StoreKey<each Value>)
  let current: [Key: PropertyListValue]
  let changes: StoreChanges

  /// An iterator, which begins with the values at the time the sequence was made.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
