internal import Dispatch
public import KithCore
public import Observation
internal import Synchronization

/// A key-value space of an account, shared by all its devices.
///
/// Reads come from memory. A write is visible at once, and durable soon after (``set(_:forKey:)-(_,String)``)
/// or on return (`commit`). Any thread may call any member.
///
/// ```swift
/// let accounts = try Accounts(.init(directory: directory))
/// let store = try accounts.store("com.example.Editor")
/// try store.set("dark", forKey: "theme")
/// print(store.value(forKey: "theme") ?? "not set")
/// ```
///
/// `withObservationTracking` follows the keys that its closure reads; see <doc:ObservingChanges>.
public final class KeyValueStore: Observable, Sendable {
  /// The store's identifier.
  public let identifier: StoreIdentifier
  let view: StoreView
  private let backend: Mutex<Backend>
  /// Called when the service has ended. Returns whether another one may still come.
  typealias ServiceEndHandler = @Sendable () -> Bool

  private let onServiceEnd: ServiceEndHandler
  /// Lets in one transaction at a time that is tried again, in order of arrival.
  let retries = TaskQueue()
  /// The longest wait of a write or a flush for a new service.
  private let longestReplacing: Duration

  /// Opens the store at its service, if that failed when the service replaced another.
  typealias Reopening = @Sendable () throws(KithError) -> Void

  private struct Backend {
    var service: any StoreService
    /// Nil: the service has the store open.
    var reopening: Reopening?
    /// The number of the service's last loss of writes that is known here.
    var knownLoss: Int
    /// Writes were lost, until ``flush()`` throws for it.
    var loss: KithError?
    var waiters: [DispatchSemaphore] = []

    init(_ service: any StoreService) {
      self.service = service
      knownLoss = service.loss?.number ?? 0
    }

    mutating func noteLoss() {
      guard let found = service.loss, found.number > knownLoss else { return }
      knownLoss = found.number
      loss = found.error
    }
  }

  init(
    service: any StoreService, view: StoreView, longestReplacing: Duration = .seconds(10),
    onServiceEnd: @escaping ServiceEndHandler = { false }
  ) {
    identifier = view.identifier
    backend = Mutex(Backend(service))
    self.view = view
    self.longestReplacing = longestReplacing
    self.onServiceEnd = onServiceEnd
  }

  /// Changes with the account, and with the program that has the directory open.
  var service: any StoreService { backend.withLock { $0.service } }

  /// `reopening`: the service could not open the store. The next request tries again first, and throws
  /// the error if that fails, too.
  func replaceService(by next: any StoreService, reopening: Reopening? = nil) {
    backend.withLock { backend in
      backend.noteLoss()
      (backend.service, backend.reopening) = (next, reopening)
      backend.knownLoss = next.loss?.number ?? 0
    }
    wakeWaiters()
  }

  var mustReopen: Bool { backend.withLock { $0.reopening != nil } }

  func reopen() throws(KithError) { try backend.withLock { $0.reopening }?() }

  func wakeWaiters() {
    let waiters = backend.withLock { backend in
      defer { backend.waiters = [] }
      return backend.waiters
    }
    for waiter in waiters { waiter.signal() }
  }

  package var owned: (device: DeviceID, values: [Key: PropertyListValue]) { view.owned }

  // MARK: Reading

  /// Returns the value that a key shows, or nil.
  ///
  /// - Complexity: O(1).
  public func value(forKey key: String) -> PropertyListValue? {
    view.observedValue(key)
  }

  /// Returns a key's value, or its default if the store shows no value of its type.
  ///
  /// ```swift
  /// let theme = store[.theme]
  /// ```
  ///
  /// - Complexity: O(1) for scalars, otherwise O(*n*) in the value's size.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    key.value(in: view.observedValue(key.name))
  }

  /// Returns whether a key reads as its default because the store shows no value of its type.
  ///
  /// False for a set value that equals the default.
  ///
  /// - Complexity: As for reading the key.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    key.isDefault(in: view.observedValue(key.name))
  }

  /// Returns whether a key shows a value that its type cannot read, such as another version's of the
  /// program. It then reads as its default.
  ///
  /// ```swift
  /// if store.isUnreadable(.bookmarks) { offerUpdate() }
  /// ```
  ///
  /// - Complexity: As for reading the key.
  public func isUnreadable<Value>(_ key: StoreKey<Value>) -> Bool {
    key.isUnreadable(in: view.observedValue(key.name))
  }

  /// All values shown at this moment, to read several keys consistently.
  ///
  /// ```swift
  /// let now = store.snapshot
  /// draw(now[.theme], now[.fontSize])
  /// ```
  ///
  /// - Complexity: O(1), copied on write.
  public var snapshot: StoreSnapshot { StoreSnapshot(dictionary: view.observedValues) }

  /// The keys with a shown value, in order of their UTF-8 bytes.
  ///
  /// - Complexity: O(*n* log *n*).
  public var keys: [Key] { view.observedValues.keys.sorted() }

  /// All shown values, by ``Key``.
  ///
  /// - Complexity: O(1), copied on write.
  public var dictionary: [Key: PropertyListValue] { view.observedValues }

  // MARK: Writing

  /// Sets a key's value, which is visible at once; nil removes the key.
  ///
  /// The write is durable after the next commit while the node runs, otherwise on return.
  ///
  /// If another program's node has the directory open, this blocks until the node accepts the
  /// write: usually under a millisecond, at most 30 seconds. If that node ends, this waits up to 10
  /// seconds until a program, perhaps this one, opens the directory.
  ///
  /// ```swift
  /// try store.set("dark", forKey: "theme")
  /// try store.set(13.5, forKey: "fontSize")
  /// ```
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `valueTooLarge`, `quotaExceeded`,
  ///   `unsupportedValue`, `closed`, or a storage code; then nothing has changed, but if the disk
  ///   failed at its sync, other devices may have the write and bring it back. With `timedOut`
  ///   if another program's node gave no answer: it may have taken the write, which is not
  ///   repeated.
  /// - Complexity: O(log *k*) in the store's keys, O(*n*) in the value's size.
  public func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
    try write([.encoding(value, forKey: key)])
  }

  /// Sets a key's value as ``write(each:)`` writes: it may wait for other writes.
  package func setCoalesced(
    _ value: PropertyListValue?, forKey key: String
  ) throws(KithError) {
    let refusal = write(each: [[try .encoding(value, forKey: key)]])[0]
    if let refusal { throw refusal }
  }

  /// Writes transactions in order, each accepted or refused alone. They wait up to 20 ms to be
  /// committed and published with others; ``flush()`` ends the wait. Returns the error of each; nil:
  /// it is accepted.
  package func write(each transactions: [[KithCore.Operation]]) -> [KithError?] {
    var outcomes: [KithError?] = []
    do throws(KithError) {
      try withService { service throws(KithError) in
        while outcomes.count < transactions.count {
          outcomes += try service.write(identifier, each: transactions[outcomes.count...])
        }
      }
    } catch {
      outcomes += [KithError?](repeating: error, count: transactions.count - outcomes.count)
    }
    return outcomes
  }

  /// Sets a key's value as ``set(_:forKey:)-(_,String)`` does; nil removes a key of an optional type.
  ///
  /// It replaces also a value that the type cannot read. Members of a stored dictionary that the type
  /// does not know stay.
  ///
  /// ```swift
  /// try store.set(.dark, for: .theme)
  /// ```
  ///
  /// - Throws: ``KithError`` as ``set(_:forKey:)-(_,String)`` does, or `conflict` if others wrote the
  ///   key at each of 1,000 tries.
  /// - Complexity: O(log *k*) in the store's keys, O(*n*) in the value's size.
  public func set<Value>(_ value: Value, for key: StoreKey<Value>) throws(KithError) {
    try replace(value, for: key) { new, expected throws(KithError) in
      try set(new, forKey: key.name, expecting: expected)
    }
  }

  /// Sets a key's value as ``set(_:for:)`` does. `write` gets the value, and writes it if the store
  /// shows what is expected; with `unexpectedValue`, it gets another one.
  package func replace<Value>(
    _ value: Value, for key: StoreKey<Value>,
    by write: (PropertyListValue?, ExpectedValues) throws(KithError) -> Void
  ) throws(KithError) {
    for _ in 0..<Limits.commitTries {
      let shown = view.value(key.name)
      let new = try key.stored(value, over: shown)
      // Members of a dictionary stay: of the one that the store shows when it takes the write.
      let expected =
        try shown?.holdsDictionary == true
        ? ExpectedValues(values: [.encoding(shown, forKey: key.name)]) : ExpectedValues.none
      do throws(KithError) {
        return try write(new, expected)
      } catch {
        guard error.code == .unexpectedValue else { throw error }
      }
    }
    throw .conflict
  }

  /// Removes a key, if it is present; the quota never refuses this.
  ///
  /// Blocks as ``set(_:forKey:)-(_,String)`` does: at another program's node for up to 30 seconds.
  ///
  /// ```swift
  /// try store.removeValue(forKey: "theme")
  /// ```
  ///
  /// - Throws: ``KithError`` with `invalidKey`, `closed`, `timedOut` or a storage code.
  public func removeValue(forKey key: String) throws(KithError) {
    try write([KithCore.Operation(key: key, value: nil)])
  }

  /// Removes keys in one transaction, so that they read as their defaults.
  ///
  /// Blocks as ``set(_:forKey:)-(_,String)`` does: at another program's node for up to 30 seconds.
  ///
  /// ```swift
  /// try store.reset(.theme, .fontSize)
  /// ```
  ///
  /// - Parameter keys: The keys; their types may differ.
  /// - Throws: ``KithError`` as ``removeValue(forKey:)-(String)`` does; then nothing has changed.
  /// - Complexity: O(*n* log *k*) in the named keys and the store's keys.
  public func reset<each Value>(_ keys: repeat StoreKey<each Value>) throws(KithError) {
    var operations: [KithCore.Operation] = []
    for key in repeat each keys {
      operations.append(KithCore.Operation(key: key.name, value: nil))
    }
    if !operations.isEmpty { try write(operations) }
  }

  /// Sets a key's value as ``set(_:forKey:)-(_,String)`` does, if it shows `expected` when the write is
  /// accepted; nil: no value.
  ///
  /// - Throws: Also `unexpectedValue`; then ``value(forKey:)-(String)`` is what the key shows instead.
  package func set(
    _ value: PropertyListValue?, forKey key: String, expecting expected: PropertyListValue?
  ) throws(KithError) {
    try set(
      value, forKey: key,
      expecting: ExpectedValues(values: [.encoding(expected, forKey: key)]))
  }

  /// Sets a key's value as ``set(_:forKey:)-(_,String)`` does, if the store shows what is expected
  /// when the write is accepted.
  ///
  /// - Throws: Also `unexpectedValue`.
  package func set(
    _ value: PropertyListValue?, forKey key: String, expecting expected: ExpectedValues
  ) throws(KithError) {
    try write([.encoding(value, forKey: key)], expecting: expected)
  }

  private func write(
    _ operations: [KithCore.Operation], expecting: ExpectedValues = .none
  ) throws(KithError) {
    try withService { service throws(KithError) in
      try service.write(identifier, operations, expecting: expecting)
    }
  }

  /// Makes all earlier writes durable, and blocks while the disk writes.
  ///
  /// At another program's node this blocks for at most 30 seconds. If that node ends, this waits as
  /// ``set(_:forKey:)-(_,String)`` does.
  ///
  /// - Throws: ``KithError`` with `closed`, or a storage code if a write could not be made durable,
  ///   now or since the last call, also if it was one of another store of this directory. With
  ///   `timedOut` if another program's node does not answer for 30 seconds, or was killed first.
  public func flush() throws(KithError) {
    do throws(KithError) {
      try withService { service throws(KithError) in try service.flush() }
    } catch {
      backend.withLock { backend in
        backend.noteLoss()
        backend.loss = nil
      }
      throw error
    }
    let loss = backend.withLock { backend in
      backend.noteLoss()
      return backend.loss.take()
    }
    if let loss { throw loss }
  }

  /// Retries the body with the next service, if one ended without performing it.
  func withService<Result>(
    _ body: (any StoreService) throws(KithError) -> Result
  ) throws(KithError) -> Result {
    var service = service
    while true {
      do throws(KithError) {
        try reopen()
        return try body(service)
      } catch {
        guard error.code == .closed, let next = replacement(of: service) else { throw error }
        service = next
      }
    }
  }

  /// As ``withService(_:)``, for a body that waits.
  func awaitingService<Result>(
    _ body: (any StoreService) async throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var service = service
    while true {
      do throws(KithError) {
        if mustReopen {
          try await BlockingThread.run { () throws(KithError) in try self.reopen() }
        }
        return try await body(service)
      } catch {
        let old = service
        guard error.code == .closed,
          let next = await BlockingThread.run({ self.replacement(of: old) })
        else { throw error }
        service = next
      }
    }
  }

  /// Blocks until another service replaces an ended one; nil if none comes in time.
  private func replacement(of old: any StoreService) -> (any StoreService)? {
    let isReplaced = DispatchSemaphore(value: 0)
    // Before looking, so that no replacement is missed.
    backend.withLock { $0.waiters.append(isReplaced) }
    defer { backend.withLock { $0.waiters.removeAll { $0 === isReplaced } } }
    if service === old {
      // Elsewhere, because taking the directory over may last longer than this may block. If no thread
      // is left, ``Accounts/run()`` may still take it over.
      _ = BlockingThread.start { if !self.onServiceEnd() { isReplaced.signal() } }
      _ = isReplaced.wait(timeout: .now() + longestReplacing.dispatch)
    }
    let next = service
    return next === old ? nil : next
  }
}
