internal import Dispatch
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
  /// Called when the service has ended: sees to it that another one replaces it. Returns whether one
  /// may still come.
  typealias Succession = @Sendable () -> Bool

  private let succession: Succession

  /// The service that has the store, and those who wait for another one.
  private struct Behind {
    var service: any StoreService
    /// Whether a service before it has ended and lost accepted writes, which nobody was told of.
    var hasLostWrites = false
    var waiters: [DispatchSemaphore] = []
  }

  /// The longest time that a write or a flush waits for a new service.
  private static let longestReplacing = Duration.seconds(10)

  init(
    service: any StoreService, view: StoreView,
    succession: @escaping Succession = { false }
  ) {
    identifier = view.identifier
    behind = Mutex(Behind(service: service))
    self.view = view
    self.succession = succession
  }

  /// The service that has the store. It changes with the account, and with the program that has the
  /// directory open.
  var service: any StoreService { behind.withLock { $0.service } }

  /// Lets another service have the store from now on.
  func replaceService(by next: any StoreService) {
    behind.withLock { behind in
      if behind.service.hasLostWrites { behind.hasLostWrites = true }
      behind.service = next
    }
    wakeWaiters()
  }

  /// Lets those look again who wait for another service.
  func wakeWaiters() {
    let waiters = behind.withLock { behind in
      defer { behind.waiters = [] }
      return behind.waiters
    }
    for waiter in waiters { waiter.signal() }
  }

  /// The values that are shown, and the device that they belong to.
  package var owned: (device: DeviceID, values: [Key: PropertyListValue]) { view.owned }

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
  /// It is keyed by ``KeyValueStore/Key``, because a dictionary of `String` would merge canonically
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
  /// If another program of this host has the directory open, this returns once that program has
  /// accepted the write, usually within a fraction of a millisecond. It waits up to 30 seconds for a
  /// program that is stopped. If that program has ended, it waits up to 10 seconds until another one
  /// has the directory open, which may be this one.
  ///
  /// ```swift
  /// try store.set("dark", forKey: "theme")
  /// try store.set(13.5, forKey: "fontSize")
  /// ```
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `quotaExceeded`,
  ///   `unsupportedValue`, `closed`, or a storage code; then nothing has changed. With `timedOut` if
  ///   another program had the directory open and ended without an answer, or does not answer: it may
  ///   have taken the write or not, and the write is not repeated.
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
  /// ```swift
  /// try store.removeValue(forKey: "theme")
  /// ```
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `closed` or a storage code.
  public func removeValue(forKey key: String) throws(KithError) {
    try write([KithCore.Operation(key: key, value: nil)])
  }

  /// Removes keys in one transaction, so that they read as their defaults again.
  ///
  /// ```swift
  /// try store.reset(.theme, .fontSize)
  /// ```
  ///
  /// - Parameter keys: The keys; their types may differ.
  /// - Throws: ``KithError`` as ``removeValue(forKey:)`` does; then nothing has changed.
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
    _ body: (inout KeyValueStore.Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var transaction = KeyValueStore.Transaction(base: view.values)
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
    _ body: (inout KeyValueStore.Transaction) throws -> Result
  ) async throws -> Result {
    var transaction = KeyValueStore.Transaction(base: view.values)
    let result = try body(&transaction)
    try await commit(transaction.operations())
    return result
  }

  /// Writes one transaction whose values are encoded already.
  package func commit(_ operations: [KithCore.Operation]) async throws(KithError) {
    guard !operations.isEmpty else { return }
    var service = service
    while true {
      do throws(KithError) {
        return try await service.writeDurably(identifier, operations)
      } catch {
        let old = service
        guard error.code == .closed,
          let next = try await BlockingThread.run({ self.replacement(of: old) })
        else { throw error }
        service = next
      }
    }
  }

  private func write(
    _ operations: [KithCore.Operation], gathers: Bool = false
  ) throws(KithError) {
    try withService { service throws(KithError) in
      try service.write(identifier, operations, gathers: gathers)
    }
  }

  /// Makes all earlier writes durable. It blocks while the disk writes.
  ///
  /// - Throws: ``KithError`` with `closed`, with a storage code if a write could not be made durable,
  ///   or with `timedOut` if another program has the directory open and does not answer for 30
  ///   seconds, or was killed before it made a write durable.
  public func flush() throws(KithError) {
    try withService { service throws(KithError) in try service.flush() }
    let hasLostWrites = behind.withLock { behind in
      defer { behind.hasLostWrites = false }
      return behind.hasLostWrites
    }
    guard hasLostWrites else { return }
    throw KithError(
      .timedOut,
      "The program that had the directory open has ended before it said that all writes are durable. "
        + "Read the keys, and write them again if need be.")
  }

  /// Calls the body with the service, and again with the next one if it has ended without performing
  /// it.
  private func withService(
    _ body: (any StoreService) throws(KithError) -> Void
  ) throws(KithError) {
    var service = service
    while true {
      do throws(KithError) {
        return try body(service)
      } catch {
        guard error.code == .closed, let next = replacement(of: service) else { throw error }
        service = next
      }
    }
  }

  /// Blocks until another service has replaced one that has ended, usually for milliseconds. Returns
  /// nil if none comes.
  private func replacement(of old: any StoreService) -> (any StoreService)? {
    let deadline = DispatchTime.now() + Self.longestReplacing.dispatch
    while true {
      // Asked for before looking, so that no replacement is missed between.
      let isReplaced = DispatchSemaphore(value: 0)
      behind.withLock { $0.waiters.append(isReplaced) }
      let mayCome = succession()
      let next = service
      if next !== old { return next }
      guard mayCome, isReplaced.wait(timeout: deadline) == .success else { return nil }
    }
  }
}
