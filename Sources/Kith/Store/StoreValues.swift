internal import KithCore

/// The values of one key; see `KeyValueStore.values(for:)`.
public struct StoreValues<Value: StoreValue & Equatable>: AsyncSequence, Sendable {
  /// Takes the values.
  public struct AsyncIterator: AsyncIteratorProtocol {
    private let key: StoreKey<Value>
    private var first: PropertyListValue??
    private var last: Value?
    private var changes: StoreChanges.AsyncIterator

    init(_ values: StoreValues) {
      key = values.key
      first = .some(values.current)
      changes = values.changes.makeAsyncIterator()
    }

    /// The next value that differs from the one before, or nil at the end.
    public mutating func next() async -> Value? {
      await next(isolation: #isolation)
    }

    /// The next value that differs from the one before, or nil at the end.
    public mutating func next(isolation actor: isolated (any Actor)?) async -> Value? {
      if let current = first.take() { return typed(current) }
      while let change = await changes.next(isolation: actor) {
        guard let item = change.items.first(where: { Key($0.key) == Key(key.name) }) else {
          continue
        }
        let before = last
        let value = typed(item.new)
        if value != before { return value }
      }
      return nil
    }

    private mutating func typed(_ value: PropertyListValue?) -> Value {
      let value = value.flatMap(Value.init(propertyListValue:)) ?? key.defaultValue
      last = value
      return value
    }
  }

  let key: StoreKey<Value>
  let current: PropertyListValue?
  let changes: StoreChanges

  /// An iterator, which begins with the value at the time the sequence was made.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
