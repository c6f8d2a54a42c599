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
/// Each read returns the value shown at that moment, on any thread. `onChange` is called after the
/// change, on the thread that found it. Draw on your own thread. Reads and writes cost as much as
/// on the store itself.
public final class ObservableStore: Observable, Service, Sendable {
  /// The store.
  public let store: KeyValueStore

  private let registrar = ObservationRegistrar()
  private let state = Mutex(State())

  private struct State {
    var error: KithError?
    /// Own writes that observers know of, until ``ObservableStore/run()`` meets them. At most one a
    /// key, and only while it runs.
    var told: [Key: PropertyListValue?] = [:]
    var isRunning = false
  }

  /// Makes a store observable.
  public init(_ store: KeyValueStore) {
    self.store = store
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

  /// The reason why the last write was refused; nil after an accepted one.
  public var error: KithError? {
    registrar.access(self, keyPath: \.error)
    return state.withLock { $0.error }
  }

  /// Tells observers about changes by any writer.
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
    let changes = store.snapshotAndChanges().changes
    state.withLock { $0.isRunning = true }
    defer {
      state.withLock { state in
        state.isRunning = false
        state.told = [:]
      }
    }
    // Changes before this point may have been missed.
    tellAll()
    await cancelWhenGracefulShutdown {
      for await change in changes { self.tell(change) }
    }
  }

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
    // A joined change lacks keys that changed and changed back, but an observer may have read the
    // value between.
    if change.isJoined { return tellAll() }
    for item in change.items {
      let key = Key(item.key)
      let told = state.withLock { $0.told.removeValue(forKey: key) }
      if change.reason == .ownWrite, let told, told == item.new { continue }
      tell(key)
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
