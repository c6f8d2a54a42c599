public import KithCore
public import Observation
public import ServiceLifecycle
internal import Synchronization

/// A store that `withObservationTracking` and `Observations` follow key by key, for programs that
/// draw its values.
///
/// ```swift
/// let settings = ObservableStore(store)
/// withObservationTracking {
///   label.text = settings[.theme].name
/// } onChange: {
///   redraw.setNeeded()  // called once; track again when you draw again
/// }
/// ```
/// Call ``run()`` in a task: it tells observers about changes by others. Writes through the object
/// itself are reported at once, even while `run()` is not called.
///
/// The object holds no values of its own: each read returns the value that the store shows at that
/// moment, on any thread. `onChange` is called after the change, on the thread that found it. Draw
/// on your own thread.
public final class ObservableStore: Observable, Service, Sendable {
  /// The store.
  public let store: KeyValueStore

  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())

  private struct State {
    var error: KithError?
    /// Own writes that observers were told of, until ``ObservableStore/run()`` meets them. They are
    /// kept only while it runs, one for each key, so they are bounded as the store is.
    var told: [Key: PropertyListValue?] = [:]
    var isRunning = false
  }

  /// Makes a store observable.
  public init(_ store: KeyValueStore) {
    self.store = store
  }

  /// The value of a key, or its default.
  ///
  /// Assigning writes as ``KeyValueStore/set(_:for:)`` does. A refused write changes nothing, and
  /// ``error`` gives the reason.
  ///
  /// ```swift
  /// settings[.theme] = .dark
  /// if let error = settings.error { print(error.message) }
  /// ```
  ///
  /// - Complexity: As for reading and writing the store.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    get {
      track(Key(key.name))
      return store[key]
    }
    set {
      // The error is kept in `error`, which is observed as well.
      try? write([Key(key.name)]) { (store) throws(KithError) in
        try store.set(newValue, for: key)
      }
    }
  }

  /// Returns the value that a key shows, or nil.
  ///
  /// - Complexity: As for reading the store.
  public func value(forKey key: String) -> PropertyListValue? {
    track(Key(key))
    return store.value(forKey: key)
  }

  /// Returns whether a key reads as its default; see ``KeyValueStore/isDefault(_:)``.
  ///
  /// - Complexity: As for reading the store.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    track(Key(key.name))
    return store.isDefault(key)
  }

  /// Returns the values of one type whose keys begin with a prefix; see
  /// ``StoreSnapshot/values(prefix:as:)``.
  ///
  /// The observer is then told about changes of every key.
  ///
  /// ```swift
  /// let tabs = settings.values(prefix: "tab.", as: URL.self)
  /// ```
  ///
  /// - Complexity: As for reading the store.
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

  /// The reason for the refusal of the last assignment; nil after an accepted one.
  public var error: KithError? {
    registrar.access(self, keyPath: \.error)
    return state.withLock { $0.error }
  }

  /// Tells observers about changes by any writer, until the task is cancelled, its service group
  /// shuts down or the node is closed.
  ///
  /// ```swift
  /// try await withThrowingDiscardingTaskGroup { group in
  ///   group.addTask { try await accounts.run() }
  ///   group.addTask { await settings.run() }
  /// }
  /// ```
  public func run() async {
    let changes = store.snapshotAndChanges().changes
    state.withLock { $0.isRunning = true }
    defer {
      state.withLock { state in
        state.isRunning = false
        state.told = [:]
      }
    }
    // A change before this point may have been missed.
    tellAll()
    await cancelWhenGracefulShutdown {
      for await change in changes { self.tell(change) }
    }
  }

  /// Writes, keeps the error of a refused write, and tells observers about the keys.
  func write(
    _ keys: [Key], _ body: (KeyValueStore) throws(KithError) -> Void
  ) throws(KithError) {
    do throws(KithError) {
      try body(store)
    } catch {
      keep(error)
      throw error
    }
    keep(nil)
    for key in keys {
      let shown = store.value(forKey: key.text)
      state.withLock { state in
        if state.isRunning { state.told[key] = .some(shown) }
      }
      tell(key)
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
    // If a key changed and changed back, a joined change does not contain it. An observer may have
    // read the value between, so all are told.
    if change.isJoined { return tellAll() }
    for item in change.items {
      let key = Key(item.key)
      let told = state.withLock { $0.told.removeValue(forKey: key) }
      if change.reason == .ownWrite, let told, told == item.new { continue }
      tell(key)
    }
  }

  // MARK: Key paths of the registrar

  /// Identifies one key for the registrar.
  private subscript(key: Key) -> Bool { false }
  /// Changes with every key.
  private var anyKey: Bool { false }
  /// Identifies all keys at once.
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
