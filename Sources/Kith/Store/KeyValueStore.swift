internal import Glibc
public import KithCore
internal import Synchronization

/// A key-value space of an account, shared by all its devices.
///
/// Reads come from memory and never wait. A write is visible at once. It is durable soon after
/// (``set(_:forKey:)``) or on return (`commit`). All members may be called from any thread.
///
/// ```swift
/// let accounts = try Accounts(.init(directory: directory))
/// let store = try accounts.store("com.example.Editor")
/// try store.set("dark", forKey: "theme")
/// print(store.value(forKey: "theme") ?? "not set")
/// ```
public final class KeyValueStore: Sendable {
  /// The store's identifier.
  public let identifier: StoreIdentifier
  let view: StoreView
  private let behind: Mutex<Behind>
  /// Called when the backing is closed. If `isGone`, starts the take-over. Returns whether a new
  /// backing may still come.
  typealias Succession = @Sendable (_ isGone: Bool) -> Bool

  private let succession: Succession

  /// The current backing, and the number of times it was replaced.
  private struct Behind {
    var backing: any StoreBacking
    var generation = 0
  }

  /// The longest time that a write or a flush waits for a new backing.
  private static let longestReplacing = Duration.seconds(10)
  /// The time between two checks for a new backing, in microseconds.
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

  /// The current backing; a change of account replaces it.
  var backing: any StoreBacking {
    get { behind.withLock { $0.backing } }
    set {
      behind.withLock { behind in
        behind.backing = newValue
        behind.generation += 1
      }
    }
  }

  /// The owner of this store at the moment. Blocks while the owner changes. If it is the same
  /// before and after a read, the values belong to one owner.
  package var standing: Standing {
    _ = succession(false)
    return behind.withLock {
      Standing(generation: $0.generation, device: ($0.backing as? Engine)?.keys.id)
    }
  }

  // MARK: Reading

  /// Returns the value that a key shows, or nil.
  ///
  /// - Complexity: O(1), from memory.
  public func value(forKey key: String) -> PropertyListValue? {
    view.value(key)
  }

  /// Returns the value of a key, or its default if the store shows no value of its type.
  ///
  /// The default is never written.
  ///
  /// ```swift
  /// let theme = store[.theme]
  /// ```
  ///
  /// - Complexity: O(1) for scalars, otherwise O(*n*) in the size of the value.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    key.value(in: view.value(key.name))
  }

  /// Returns whether a key reads as its default because the store shows no value of its type.
  ///
  /// A value that was set counts as a value, even if it equals the default.
  ///
  /// - Complexity: As for reading the key.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    key.isDefault(in: view.value(key.name))
  }

  /// The values shown at this moment, for reading several keys that belong together.
  ///
  /// ```swift
  /// let now = store.snapshot
  /// draw(now[.theme], now[.fontSize])
  /// ```
  ///
  /// - Complexity: O(1), copied on write.
  public var snapshot: StoreSnapshot { StoreSnapshot(values: view.values) }

  /// The keys with a shown value, in order of their UTF-8 bytes.
  ///
  /// - Complexity: O(*n* log *n*).
  public var keys: [String] {
    view.values.keys.sorted().map(\.text)
  }

  /// All values shown at one moment.
  ///
  /// It is keyed by ``Key``, because a dictionary of `String` would merge canonically
  /// equivalent keys.
  ///
  /// - Complexity: O(1), copied on write.
  public var dictionary: [Key: PropertyListValue] { view.values }

  // MARK: Writing

  /// Sets a key's value, which is visible at once.
  ///
  /// It is durable after the next commit while the node runs, otherwise on return. Nil removes
  /// the key.
  ///
  /// ```swift
  /// try store.set("dark", forKey: "theme")
  /// try store.set(13.5, forKey: "fontSize")
  /// ```
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `quotaExceeded`,
  ///   `unsupportedValue`, `closed`, or a storage code; then nothing has changed.
  /// - Complexity: O(log *k*) in the keys of the store, O(*n*) in the size of the value.
  public func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
    try write([.encoding(value, forKey: key)])
  }

  /// Sets a key's value; see ``set(_:forKey:)``. If `gathers`, the write waits a moment for others,
  /// to be committed and published with them; ``flush()`` ends the wait.
  package func set(
    _ value: PropertyListValue?, forKey key: String, gathers: Bool
  ) throws(KithError) {
    try write([.encoding(value, forKey: key)], gathers: gathers)
  }

  /// Sets a key's value; see ``set(_:forKey:)``. Nil removes a key of an optional type.
  ///
  /// ```swift
  /// try store.set(.dark, for: .theme)
  /// ```
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

  /// Removes a key, if it is present. A removal is always accepted, unless the disk fails.
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `closed` or a storage code.
  public func remove(_ key: String) throws(KithError) {
    try write([KithCore.Operation(key: key, value: nil)])
  }

  /// Removes a key; see ``remove(_:)-(String)``.
  public func remove<Value>(_ key: StoreKey<Value>) throws(KithError) {
    try remove(key.name)
  }

  /// Removes several keys in one transaction, so that they read as their defaults again.
  ///
  /// ```swift
  /// try store.reset(.theme, .fontSize)
  /// ```
  ///
  /// - Parameter keys: The keys; their types may differ.
  /// - Throws: ``KithError`` as ``remove(_:)-(String)`` does; then nothing has changed.
  /// - Complexity: O(*n* log *k*) in the keys named and the keys of the store.
  public func reset<each Value>(_ keys: repeat StoreKey<each Value>) throws(KithError) {
    var operations: [KithCore.Operation] = []
    for key in repeat each keys {
      operations.append(KithCore.Operation(key: key.name, value: nil))
    }
    if !operations.isEmpty { try write(operations) }
  }

  /// Writes several keys as one transaction, and returns once it survives a crash.
  ///
  /// ```swift
  /// try await store.commit {
  ///   $0[.theme] = .dark
  ///   $0[.window].width += 100
  /// }
  /// ```
  /// The body is called once, on the caller's actor if there is one. It reads the store as it was
  /// when the body began. Transactions of several tasks may be committed together.
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written.
  /// - Returns: The result of the body.
  /// - Throws: ``KithError`` as ``set(_:forKey:)`` does, or the error of the body.
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

  /// Writes several keys as one transaction, and returns once it survives a crash.
  ///
  /// The body may throw the program's own errors.
  ///
  /// ```swift
  /// try await store.commit {
  ///   guard $0[.credits] >= price else { throw ShopError.tooFewCredits }
  ///   $0[.credits] -= price
  /// }
  /// ```
  ///
  /// - Parameter body: Reads and writes; if it throws, nothing is written.
  /// - Returns: The result of the body.
  /// - Throws: The error of the body, or ``KithError`` as ``set(_:forKey:)`` does.
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

  /// Writes one transaction whose values are encoded already.
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

  /// Writes to the backing, and again to the next one if it is replaced meanwhile.
  private func write(
    _ operations: [KithCore.Operation], gathers: Bool = false
  ) throws(KithError) {
    try withBacking { backing throws(KithError) in
      try backing.write(identifier, operations, gathers: gathers)
    }
  }

  /// Makes all earlier writes durable. It blocks while the disk writes.
  ///
  /// - Throws: ``KithError`` with `closed`, or with a storage code if a write could not be
  ///   made durable.
  public func flush() throws(KithError) {
    try withBacking { backing throws(KithError) in try backing.flush() }
  }

  /// Calls the body with the backing, and again with the next one if it is replaced meanwhile.
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

  /// Blocks until another backing has replaced a closed one, usually for milliseconds. Returns nil
  /// if none comes.
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
