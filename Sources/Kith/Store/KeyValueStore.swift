internal import Dispatch
public import KithCore
internal import Synchronization

/// One key-value space of an account, shared by all its devices.
///
/// Reads come from memory and never wait. Writes show at once, and are durable soon after
/// (``set(_:forKey:)``) or on return (``commit(_:)``). All members may be used from any thread.
public final class KeyValueStore: Sendable {
  /// The store's identifier.
  public let identifier: StoreIdentifier
  let view: StoreView
  private let behind: Mutex<any StoreBacking>
  /// Entered while what stands behind is being replaced.
  private let replacing: DispatchGroup?

  /// How long a write waits for what replaces what stood behind the store.
  private static let longestReplacing = DispatchTimeInterval.seconds(10)

  init(backing: any StoreBacking, view: StoreView, replacing: DispatchGroup? = nil) {
    identifier = view.identifier
    behind = Mutex(backing)
    self.view = view
    self.replacing = replacing
  }

  /// What stands behind it now; another after a change of account.
  var backing: any StoreBacking {
    get { behind.withLock { $0 } }
    set { behind.withLock { $0 = newValue } }
  }

  // MARK: Reading

  /// What a key shows, or nil.
  ///
  /// - Complexity: O(1), from memory.
  public func value(forKey key: String) -> PropertyListValue? {
    view.value(key)
  }

  /// What a key shows, or its default where it shows nothing of the type. The default is never
  /// written.
  ///
  /// - Complexity: O(1) for scalars, otherwise O(*n*) in the size of the value.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    view.value(key.name).flatMap(Value.init(propertyListValue:)) ?? key.defaultValue
  }

  /// The keys that show something, in order of their UTF-8 bytes.
  ///
  /// - Complexity: O(*n* log *n*).
  public var keys: [String] {
    view.values.keys.sorted().map(\.text)
  }

  /// All that is shown, as of one moment. By ``Key``, since a dictionary of `String` would take
  /// canonically equivalent keys for one.
  ///
  /// - Complexity: O(1), copied on write.
  public var dictionary: [Key: PropertyListValue] { view.values }

  // MARK: Writing

  /// Sets a key's value. It shows at once and is durable soon after: while the node runs within
  /// its next commit, otherwise on return. Nil removes the key.
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `quotaExceeded`,
  ///   `unsupportedValue`, `closed`, or a storage code; nothing has changed then.
  /// - Complexity: O(log *k*) in the keys of the store, O(*n*) in the size of the value.
  public func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
    try write([.encoding(value, forKey: key)])
  }

  /// Sets a key's value; see ``set(_:forKey:)``.
  public func set<Value>(_ value: Value, for key: StoreKey<Value>) throws(KithError) {
    let encoded: PropertyListValue
    do throws(KithError) {
      encoded = try value.propertyListValue()
    } catch {
      var error = error
      error.key = key.name
      throw error
    }
    try set(encoded, forKey: key.name)
  }

  /// Removes a key; nothing happens if it is missing. Always accepted, but for a failing disk.
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `closed` or a storage code.
  public func remove(_ key: String) throws(KithError) {
    try write([KithCore.Operation(key: key, value: nil)])
  }

  /// Removes a key; see ``remove(_:)-(String)``.
  public func remove<Value>(_ key: StoreKey<Value>) throws(KithError) {
    try remove(key.name)
  }

  /// Writes several keys that stand or fall together, and returns once they survive a crash.
  ///
  /// The body sees the store as it was when it began, and is called once. Transactions of several
  /// tasks are committed together where they meet.
  ///
  /// - Parameter body: Reads and writes; what it throws undoes all of it.
  /// - Returns: What the body returns.
  /// - Throws: ``KithError`` as ``set(_:forKey:)`` does, or what the body throws.
  @discardableResult
  public func commit<Result>(
    _ body: (inout Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var transaction = Transaction(base: view.values)
    let result = try body(&transaction)
    let operations = try transaction.operations()
    try await commit(operations)
    return result
  }

  /// Writes operations that stand or fall together, their values encoded already.
  package func commit(_ operations: [KithCore.Operation]) async throws(KithError) {
    guard !operations.isEmpty else { return }
    let backing = backing
    do throws(KithError) {
      try await backing.writeDurably(identifier, operations)
    } catch {
      guard error.code == .closed, let next = replacement(of: backing) else { throw error }
      try await next.writeDurably(identifier, operations)
    }
  }

  /// Writes to what stands behind, also where that changes meanwhile.
  private func write(_ operations: [KithCore.Operation]) throws(KithError) {
    let backing = backing
    do throws(KithError) {
      try backing.write(identifier, operations)
    } catch {
      guard error.code == .closed, let next = replacement(of: backing) else { throw error }
      try next.write(identifier, operations)
    }
  }

  /// What has replaced a backing that takes no writes any more; nil where nothing does.
  private func replacement(of old: any StoreBacking) -> (any StoreBacking)? {
    _ = replacing?.wait(timeout: .now() + Self.longestReplacing)
    let next = backing
    return next === old ? nil : next
  }

  /// Makes everything that was written before durable; it blocks for as long as the disk takes.
  ///
  /// - Throws: ``KithError`` with a storage code, where something could not be made durable.
  public func flush() throws(KithError) {
    try backing.flush()
  }
}
