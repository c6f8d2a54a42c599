public import KithCore
public import Observation
public import ServiceLifecycle
internal import Synchronization

/// A store that `withObservationTracking` and `Observations` follow, key by key: for programs that
/// draw what it shows.
///
/// ```swift
/// let settings = ObservableStore(store)
/// withObservationTracking {
///   label.text = settings[.theme].name
/// } onChange: {
///   redraw.setNeeded()  // called once; track again when you draw again
/// }
/// ```
/// Somebody has to run it: ``run()`` tells observers what others changed. Writes through the object
/// itself are told at once, also while it does not run.
///
/// It holds no values of its own: reading gives what the store shows at that moment, on any thread.
/// So what is told has happened already, and `onChange` comes on the thread that found out about
/// it; draw on yours.
public final class ObservableStore: Observable, Service, Sendable {
  /// The store.
  public let store: KeyValueStore

  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())

  private struct State {
    var error: KithError?
    /// Own writes that observers have heard of, until ``ObservableStore/run()`` meets them. Only
    /// kept while it runs, and of each key the last, so they are as bounded as the store.
    var told: [Key: PropertyListValue?] = [:]
    var isRunning = false
  }

  /// Makes a store observable.
  public init(_ store: KeyValueStore) {
    self.store = store
  }

  /// The value of a key, or its default. Assigning writes as ``KeyValueStore/set(_:for:)`` does;
  /// what is refused changes nothing, and ``error`` says why.
  ///
  /// - Complexity: As reading and writing the store.
  public subscript<Value>(key: StoreKey<Value>) -> Value {
    get {
      track(Key(key.name))
      return store[key]
    }
    set {
      // What is refused is kept in `error`, which is observed as well.
      try? write([Key(key.name)]) { (store) throws(KithError) in
        try store.set(newValue, for: key)
      }
    }
  }

  /// What a key shows, or nil.
  ///
  /// - Complexity: As reading the store.
  public func value(forKey key: String) -> PropertyListValue? {
    track(Key(key))
    return store.value(forKey: key)
  }

  /// Whether a key reads as its default; see ``KeyValueStore/isDefault(_:)``.
  ///
  /// - Complexity: As reading the store.
  public func isDefault<Value>(_ key: StoreKey<Value>) -> Bool {
    track(Key(key.name))
    return store.isDefault(key)
  }

  /// The values of one type of all keys that begin with a prefix; see
  /// ``StoreSnapshot/values(prefix:as:)``. Observers hear of every key of the store then.
  ///
  /// ```swift
  /// let tabs = settings.values(prefix: "tab.", as: URL.self)
  /// ```
  ///
  /// - Complexity: As reading the store.
  public func values<Value: StoreValue>(
    prefix: String, as type: Value.Type = PropertyListValue.self
  ) -> [Key: Value] {
    registrar.access(self, keyPath: \.anyKey)
    registrar.access(self, keyPath: \.all)
    return store.snapshot.values(prefix: prefix, as: type)
  }

  /// Removes keys all at once; see ``KeyValueStore/reset(_:)``.
  ///
  /// - Throws: ``KithError`` as the store's does; ``error`` says it, too.
  public func reset<each Value>(_ keys: repeat StoreKey<each Value>) throws(KithError) {
    var names: [Key] = []
    for key in repeat each keys { names.append(Key(key.name)) }
    try write(names) { (store) throws(KithError) in try store.reset(repeat each keys) }
  }

  /// Why the last assignment was refused; nil once one was accepted.
  public var error: KithError? {
    registrar.access(self, keyPath: \.error)
    return state.withLock { $0.error }
  }

  /// Tells observers of what changes in the store, whoever wrote it, until the task is cancelled,
  /// its service group shuts down or the node is closed.
  public func run() async {
    let changes = store.snapshotAndChanges().changes
    state.withLock { $0.isRunning = true }
    defer {
      state.withLock { state in
        state.isRunning = false
        state.told = [:]
      }
    }
    // Whoever has read before now may have missed something.
    tellAll()
    await cancelWhenGracefulShutdown {
      for await change in changes { self.tell(change) }
    }
  }

  /// Writes, keeps what was refused, and tells observers of the keys.
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

  private func tell(_ change: Change) {
    // Of a key that was changed and changed back a joined change says nothing, yet somebody may
    // have read between.
    if change.isJoined { return tellAll() }
    for item in change.items {
      let key = Key(item.key)
      let told = state.withLock { $0.told.removeValue(forKey: key) }
      if change.reason == .ownWrite, let told, told == item.new { continue }
      tell(key)
    }
  }

  // MARK: What the registrar knows

  /// Stands for one key in the registrar's books.
  private subscript(key: Key) -> Bool { false }
  /// Changes with every key.
  private var anyKey: Bool { false }
  /// Stands for all of them.
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
