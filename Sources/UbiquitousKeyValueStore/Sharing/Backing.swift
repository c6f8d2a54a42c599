#if !canImport(Darwin)
  internal import Kith

  /// What the class needs of what it stands on.
  protocol Backing: Sendable {
    /// What a key shows, from memory.
    func value(forKey key: String) -> PropertyListValue?
    /// All that is shown, as of one moment.
    var values: [Key: PropertyListValue] { get }
    /// Sets a key's value, visible at once; nil removes the key. It is published with what else is set
    /// within a moment, or before the next ``flush()``.
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError)
    /// Makes everything durable. Waits for the disk, never for a network.
    func flush() throws(KithError)
    /// What came from outside from now on; nil: nothing ever does.
    var changes: StoreChanges? { get }
    /// Transactions that were accepted and refused later, oldest first.
    var refusals: [RefusedTransaction] { get }
    /// Forgets refusals that the program has heard of.
    func takeRefusals(through number: UInt64)
    /// The account that is signed in.
    var account: AccountID? { get }
    /// The account from now on, beginning with the present one.
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { get }
    /// Works for the store until cancelled: listens, dials, commits.
    func run() async
  }

  /// One `KeyValueStore` that somebody else made, runs and closes, such as a test.
  struct PlainBacking: Backing {
    let store: KeyValueStore

    func value(forKey key: String) -> PropertyListValue? { store.value(forKey: key) }
    var values: [Key: PropertyListValue] { store.dictionary }
    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      try store.set(value, forKey: key, gathers: true)
    }
    func flush() throws(KithError) { try store.flush() }
    var changes: StoreChanges? { store.changes }
    var refusals: [RefusedTransaction] { store.refusals }
    func takeRefusals(through number: UInt64) { store.takeRefusals(through: number) }
    var account: AccountID? { nil }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable { Nothing() }
    func run() async {}
  }

  /// A sequence that ends at once.
  struct Nothing<Element: Sendable>: AsyncSequence, AsyncIteratorProtocol, Sendable {
    func next(isolation actor: isolated (any Actor)?) async -> Element? { nil }
    func makeAsyncIterator() -> Self { self }
  }
#endif
