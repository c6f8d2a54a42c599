public import KithCore
public import Observation
public import ServiceLifecycle
internal import Synchronization

/// A store that `withObservationTracking` and `Observations` follow key by key.
///
/// ```swift
/// let settings = ObservableStore(store)
/// withObservationTracking {
///   label.text = settings[.theme].name
/// } onChange: {
///   redraw.setNeeded()  // called once; track again when you draw again
/// }
/// ```
/// Call ``run()`` in a task: it tells observers about changes by others. Writes through this object
/// are reported at once, even without `run()`.
///
/// Outside the main actor, `Observations` of Swift 6.3 may never report anything if a change meets its
/// start. There, follow the store instead: ``KeyValueStore/values(of:)`` misses nothing.
///
/// Each read returns the value shown at that moment, on any thread. `onChange` is called after the
/// change, on the thread that found it. Draw on your own thread. Reads and writes cost as much as
/// on the store itself.
public final class ObservableStore: Observable, Service, Sendable {
  /// The store.
  public let store: KeyValueStore

  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())
  /// Since the start, so that ``run()`` reports no more than what changed.
  private let changes: StoreChanges

  private struct State {
    var error: KithError?
    /// Own writes that observers know of, until ``ObservableStore/run()`` meets them. At most one a
    /// key.
    var told: [Key: PropertyListValue?] = [:]
    /// The writes of each key that are under way.
    var writing: [Key: Int] = [:]
    /// Keys of writes under way that ``ObservableStore/run()`` met before the writer returned, which
    /// reports them.
    var met: Set<Key> = []
  }

  /// Makes a store observable.
  public init(_ store: KeyValueStore) {
    self.store = store
    changes = store.snapshotAndChanges().changes
  }

  /// The value of a key, or its default.
  ///
  /// Assigning writes as ``KeyValueStore/set(_:for:)`` does. If the write is refused, ``error``
  /// gives the reason.
  ///
  /// ```swift
  /// settings[.theme] = .dark
  /// if let error = settings.error { print(error.message) }
  /// ```
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    get {
      track(Key(key.name))
      return store[key]
    }
    set {
      // `error` keeps the error.
      try? write([Key(key.name)]) { (store) throws(KithError) in
        try store.set(newValue, for: key)
      }
    }
    // For assignments to a member or an element, which would replace the rest by the default's.
    _modify {
      var value = self[key]
      let isReadable = !store.isUnreadable(key)
      yield &value
      if isReadable { self[key] = value } else { keep(.unreadable(key)) }
    }
  }

  /// Returns the value that a key shows, or nil.
  public func value(forKey key: String) -> PropertyListValue? {
    track(Key(key))
    return store.value(forKey: key)
  }

  /// Returns whether a key reads as its default; see ``KeyValueStore/isDefault(_:)``.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    track(Key(key.name))
    return store.isDefault(key)
  }

  /// Returns whether a key shows a value that its type cannot read; see
  /// ``KeyValueStore/isUnreadable(_:)``. Then assigning to a member is refused.
  public func isUnreadable<Value>(_ key: StoreKey<Value>) -> Bool {
    track(Key(key.name))
    return store.isUnreadable(key)
  }

  /// Returns a prefix's values; see ``StoreSnapshot/values(prefix:as:)``.
  ///
  /// Changes of every key then call the observer.
  ///
  /// ```swift
  /// let tabs = settings.values(prefix: "tab.", as: URL.self)
  /// ```
  public func values<Value: StoreValue>(
    prefix: String, as type: Value.Type = PropertyListValue.self
  ) -> [Key: Value] {
    registrar.access(self, keyPath: \.anyKey)
    registrar.access(self, keyPath: \.all)
    return store.snapshot.values(prefix: prefix, as: type)
  }

  /// Removes several keys in one transaction; see ``KeyValueStore/reset(_:)``.
  ///
  /// - Throws: ``KithError`` as the store does; ``error`` holds it as well.
  public func reset<each Value>(_ keys: repeat StoreKey<each Value>) throws(KithError) {
    var names: [Key] = []
    for key in repeat each keys { names.append(Key(key.name)) }
    try write(names) { (store) throws(KithError) in try store.reset(repeat each keys) }
  }

  /// Writes several keys as one transaction, as `KeyValueStore.commit` does.
  ///
  /// ```swift
  /// try await settings.commit { $0[.unread] += 1 }
  /// ```
  ///
  /// - Throws: ``KithError`` as the store does; ``error`` holds it as well.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws(KithError) -> Result
  ) async throws(KithError) -> Result {
    var keys: [Key] = []
    do throws(KithError) {
      let result = try await store.commit { (transaction) throws(KithError) in
        // A try that was not accepted wrote nothing.
        end(keys, isWritten: false)
        keys = []
        let result = try body(&transaction)
        keys = transaction.writtenKeys
        begin(keys)
        return result
      }
      if !keys.isEmpty { keep(nil) }
      end(keys, isWritten: true)
      return result
    } catch {
      end(keys, isWritten: false)
      keep(error)
      throw error
    }
  }

  /// Writes several keys as one transaction, with a body that may throw any error.
  ///
  /// - Throws: The body's error, which ``error`` does not hold, or ``KithError`` as the store does.
  @discardableResult
  public nonisolated(nonsending) func commit<Result>(
    _ body: (inout KeyValueStore.Transaction) throws -> Result
  ) async throws -> Result {
    try await commit { (transaction) throws(KithError) in transaction.attempt(body) }.get()
  }

  /// The reason why the last write was refused; nil after an accepted one.
  public var error: KithError? {
    registrar.access(self, keyPath: \.error)
    return state.withLock { $0.error }
  }

  /// Tells observers about changes by any writer since this object was made. Run it once at a time.
  ///
  /// It ends when the task is cancelled, its service group shuts down or the accounts are closed.
  ///
  /// ```swift
  /// try await withThrowingDiscardingTaskGroup { group in
  ///   group.addTask { try await accounts.run() }
  ///   group.addTask { await settings.run() }
  /// }
  /// ```
  public func run() async {
    await cancelWhenGracefulShutdown {
      for await change in self.changes { self.tell(change) }
    }
  }

  func write(
    _ keys: [Key], _ body: (KeyValueStore) throws(KithError) -> Void
  ) throws(KithError) {
    begin(keys)
    do throws(KithError) {
      try body(store)
    } catch {
      end(keys, isWritten: false)
      keep(error)
      throw error
    }
    keep(nil)
    end(keys, isWritten: true)
  }

  private func begin(_ keys: [Key]) {
    state.withLock { state in
      for key in keys { state.writing[key, default: 0] += 1 }
    }
  }

  private func end(_ keys: [Key], isWritten: Bool) {
    for key in keys {
      // A program's other write of the key may have been left to this one.
      let isMet = endWriting(key, isWritten: isWritten)
      if isWritten || isMet { tell(key) }
    }
  }

  /// Returns whether ``run()`` left the key to this write.
  private func endWriting(_ key: Key, isWritten: Bool) -> Bool {
    let shown = store.value(forKey: key.text)
    return state.withLock { state in
      let isMet = state.met.contains(key)
      if isWritten, !isMet { state.told[key] = .some(shown) }
      let rest = (state.writing[key] ?? 1) - 1
      state.writing[key] = rest == 0 ? nil : rest
      if rest == 0 { state.met.remove(key) }
      return isMet
    }
  }

  private func keep(_ error: KithError?) {
    let isNews = state.withLock { state in
      let isNews = state.error != nil || error != nil
      state.error = error
      return isNews
    }
    if isNews { registrar.withMutation(of: self, keyPath: \.error) {} }
  }

  private func tell(_ change: KeyValueStore.Change) {
    // A joined change lacks keys that changed and changed back, but an observer may have read the
    // value between.
    if change.isJoined { return tellAll() }
    for item in change.items {
      let key = item.key
      let isTold = state.withLock { state in
        let told = state.told.removeValue(forKey: key)
        guard change.reason == .ownWrite else { return false }
        if state.writing[key] != nil {
          state.met.insert(key)
          return true
        }
        return told.map { $0 == item.new } ?? false
      }
      if !isTold { tell(key) }
    }
  }

  // MARK: Key paths of the registrar

  private subscript(key: Key) -> Bool { false }
  private var anyKey: Bool { false }
  private var all: Bool { false }

  private func track(_ key: Key) {
    registrar.access(self, keyPath: \.[key])
    registrar.access(self, keyPath: \.all)
  }

  private func tell(_ key: Key) {
    registrar.withMutation(of: self, keyPath: \.[key]) {}
    registrar.withMutation(of: self, keyPath: \.anyKey) {}
  }

  private func tellAll() {
    state.withLock { $0.told = [:] }
    registrar.withMutation(of: self, keyPath: \.all) {}
  }
}
