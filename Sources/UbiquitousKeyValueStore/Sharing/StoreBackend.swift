#if !canImport(Darwin)
  internal import Kith

  /// The data and services of the class's objects.
  protocol StoreBackend: Sendable {
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

  /// For a backend without accounts.
  extension StoreBackend {
    var changes: StoreChanges? { nil }
    var refusals: [KeyValueStore.Refusal] { [] }
    func takeRefusals(through number: UInt64) {}
    var account: AccountID? { nil }
    var accountUpdates: any AsyncSequence<AccountID?, Never> & Sendable {
      AsyncStream<AccountID?>(unfolding: { nil })
    }
    func run() async {}
  }
#endif
