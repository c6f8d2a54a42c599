#if !canImport(Darwin)
  internal import Kith

  /// The data and services of the class's objects.
  protocol Backing: Sendable {
    /// From memory.
    func value(forKey key: String) -> PropertyListValue?
    /// All shown at one moment.
    var values: [KeyValueStore.Key: PropertyListValue] { get }
    /// Sets a key's value, visible at once; nil removes the key. It is published soon, with other
    /// writes, or by the next ``flush()``.
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError)
    /// Makes all writes durable. It blocks for the disk, never for the network.
    func flush() throws(KithError)
    /// From outside and from now on; nil if there are never any.
    var changes: StoreChanges? { get }
    /// Oldest first.
    var refusals: [KeyValueStore.Refusal] { get }
    func takeRefusals(through number: UInt64)
    var account: AccountID? { get }
    /// The account now, and after each change.
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { get }
    func run() async
  }

  /// A store that its maker, such as a test, runs and closes.
  struct PlainBacking: Backing {
    let store: KeyValueStore

    func value(forKey key: String) -> PropertyListValue? { store.value(forKey: key) }
    var values: [KeyValueStore.Key: PropertyListValue] { store.dictionary }
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      try store.set(value, forKey: key, gathers: true)
    }
    func flush() throws(KithError) { try store.flush() }
    var changes: StoreChanges? { store.changes }
    /// Empty if another program's node does not answer: it keeps them.
    var refusals: [KeyValueStore.Refusal] { (try? store.refusals) ?? [] }
    func takeRefusals(through number: UInt64) { _ = try? store.takeRefusals(through: number) }
    var account: AccountID? { nil }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { Nothing() }
    func run() async {}
  }

  struct Nothing<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    func next(isolation actor: isolated (any Actor)?) async -> Element? { nil }
    func makeAsyncIterator() -> Self { self }
  }
#endif
