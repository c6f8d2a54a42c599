internal import Glibc
public import KithCore
internal import Synchronization

/// One key-value space of an account, shared by all its devices.
///
/// Reads come from memory and never wait. Writes show at once, and are durable soon after
/// (``set(_:forKey:)``) or on return (`commit`). All members may be used from any thread.
public final class KeyValueStore: Sendable {
  /// The store's identifier.
  public let identifier: StoreIdentifier
  let view: StoreView
  private let behind: Mutex<Behind>
  /// Blocks while what stands behind is being replaced. Where that is gone, sees to what replaces it;
  /// whether that may be still to come.
  typealias Succession = @Sendable (_ isGone: Bool) -> Bool

  private let succession: Succession

  /// What stands behind, and how often that was replaced.
  private struct Behind {
    var backing: any StoreBacking
    var generation = 0
  }

  /// How long a write or a flush waits for what replaces what stood behind the store.
  private static let longestReplacing = Duration.seconds(10)
  /// How long it waits between two looks, in microseconds.
  private static let lookMicroseconds: UInt32 = 2_000

  init(
    backing: any StoreBacking, view: StoreView,
    succession: @escaping Succession = { _ in false }
  ) {
    identifier = view.identifier
    behind = Mutex(Behind(backing: backing))
    self.view = view
    self.succession = succession
  }

  /// What stands behind it now; another after a change of account.
  var backing: any StoreBacking {
    get { behind.withLock { $0.backing } }
    set {
      behind.withLock { behind in
        behind.backing = newValue
        behind.generation += 1
      }
    }
  }

  /// Whose store this is. Waits while that changes, so who finds the same before and after reading
  /// has read one store's values.
  package var standing: Standing {
    _ = succession(false)
    return behind.withLock {
      Standing(generation: $0.generation, device: ($0.backing as? Engine)?.keys.id)
    }
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
    key.value(in: view.value(key.name))
  }

  /// Whether a key reads as its default because the store shows no value of its type.
  ///
  /// A value that was set counts, also where it equals the default.
  ///
  /// - Complexity: As reading the key.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    key.isDefault(in: view.value(key.name))
  }

  /// What the store shows at this moment, to read several keys that belong together.
  ///
  /// ```swift
  /// let now = store.snapshot
  /// draw(now[.theme], now[.fontSize])
  /// ```
  ///
  /// - Complexity: O(1), copied on write.
  public var snapshot: StoreSnapshot { StoreSnapshot(values: view.values) }

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

  /// Sets a key's value; see ``set(_:forKey:)``. Where it gathers, the write waits a moment for others, so
  /// that they are committed and published as one; ``flush()`` ends that.
  package func set(
    _ value: PropertyListValue?, forKey key: String, gathers: Bool
  ) throws(KithError) {
    try write([.encoding(value, forKey: key)], gathers: gathers)
  }

  /// Sets a key's value; see ``set(_:forKey:)``. Nil, for a key of an optional type, removes it.
  ///
  /// - Throws: ``KithError`` as ``set(_:forKey:)`` does.
  /// - Complexity: O(log *k*) in the keys of the store, O(*n*) in the size of the value.
  public func set<Value>(_ value: Value, for key: StoreKey<Value>) throws(KithError) {
    let encoded: PropertyListValue?
    do throws(KithError) {
      encoded = try value.storedValue()
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

  /// Removes keys all at once, so that they read as their defaults again.
  ///
  /// ```swift
  /// try store.reset(.theme, .fontSize)
  /// ```
  ///
  /// - Parameter keys: The keys; their types may differ.
  /// - Throws: ``KithError`` as ``remove(_:)-(String)`` does; nothing has changed then.
  /// - Complexity: O(*n* log *k*) in the keys named and the keys of the store.
  public func reset<each Value>(_ keys: repeat StoreKey<each Value>) throws(KithError) {
    var operations: [KithCore.Operation] = []
    for key in repeat each keys {
      operations.append(KithCore.Operation(key: key.name, value: nil))
    }
    if !operations.isEmpty { try write(operations) }
  }

  /// Writes several keys that stand or fall together, and returns once they survive a crash.
  ///
  /// ```swift
  /// try await store.commit {
  ///   $0[.theme] = .dark
  ///   $0[.window].width += 100
  /// }
  /// ```
  /// The body runs where the caller is, on its actor if it has one, and is called once. It sees the
  /// store as it was when it began. Transactions of several tasks are committed together where they
  /// meet.
  ///
  /// - Parameter body: Reads and writes; what it throws undoes all of it.
  /// - Returns: What the body returns.
  /// - Throws: ``KithError`` as ``set(_:forKey:)`` does, or what the body throws.
  /// - Complexity: O(*w* log *k*) in the writes and the keys of the store.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var transaction = Transaction(base: view.values)
    let result = try body(&transaction)
    try await commit(transaction.operations())
    return result
  }

  /// Writes several keys that stand or fall together, and returns once they survive a crash; the body
  /// may throw errors of the program's own.
  ///
  /// ```swift
  /// try await store.commit {
  ///   guard $0[.credits] >= price else { throw ShopError.tooFewCredits }
  ///   $0[.credits] -= price
  /// }
  /// ```
  ///
  /// - Parameter body: Reads and writes; what it throws undoes all of it.
  /// - Returns: What the body returns.
  /// - Throws: What the body throws, or ``KithError`` as ``set(_:forKey:)`` does.
  /// - Complexity: O(*w* log *k*) in the writes and the keys of the store.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout Transaction) throws -> Result
  ) async throws -> Result {
    var transaction = Transaction(base: view.values)
    let result = try body(&transaction)
    try await commit(transaction.operations())
    return result
  }

  /// Writes operations that stand or fall together, their values encoded already.
  package func commit(_ operations: [KithCore.Operation]) async throws(KithError) {
    guard !operations.isEmpty else { return }
    var backing = backing
    while true {
      do throws(KithError) {
        return try await backing.writeDurably(identifier, operations)
      } catch {
        let old = backing
        guard error.code == .closed,
          let next = try await BlockingThread.run({ self.replacement(of: old) })
        else { throw error }
        backing = next
      }
    }
  }

  /// Writes to what stands behind, also where that changes meanwhile.
  private func write(
    _ operations: [KithCore.Operation], gathers: Bool = false
  ) throws(KithError) {
    try withBacking { backing throws(KithError) in
      try backing.write(identifier, operations, gathers: gathers)
    }
  }

  /// Makes everything that was written before durable; it blocks for as long as the disk takes.
  ///
  /// - Throws: ``KithError`` with `closed`, or a storage code, where something could not be made
  ///   durable.
  public func flush() throws(KithError) {
    try withBacking { backing throws(KithError) in try backing.flush() }
  }

  /// Does it with what stands behind, and again with what replaces that meanwhile.
  private func withBacking(
    _ body: (any StoreBacking) throws(KithError) -> Void
  ) throws(KithError) {
    var backing = backing
    while true {
      do throws(KithError) {
        return try body(backing)
      } catch {
        guard error.code == .closed, let next = replacement(of: backing) else { throw error }
        backing = next
      }
    }
  }

  /// What has replaced a backing that takes no writes any more; nil where nothing comes. It is a
  /// matter of milliseconds, and blocks meanwhile.
  private func replacement(of old: any StoreBacking) -> (any StoreBacking)? {
    let deadline = ContinuousClock.now + Self.longestReplacing
    while true {
      let mayCome = succession(true)
      let next = backing
      if next !== old { return next }
      guard mayCome, ContinuousClock.now < deadline else { return nil }
      usleep(Self.lookMicroseconds)
    }
  }
}
