internal import Foundation
public import Kith
internal import KithCrypto

extension UserDefaultsMirror {
  /// Compares both sides, and copies the changes since the last comparison.
  ///
  /// Copied values are durable on both sides on return; without any, it does not block for the
  /// disk. At another program's node it blocks as `KeyValueStore.set(_:forKey:)` does: up to 30
  /// seconds for each key that it copies to the store.
  ///
  /// ```swift
  /// let report = mirror.sync()
  /// for (key, error) in report.problems { print(key, error.message) }
  /// ```
  ///
  /// - Returns: The copied keys, and those that could not be copied.
  /// - Complexity: O(*n*) in the size of the mirrored values.
  @discardableResult
  public func sync() -> Report {
    let (report, isNews) = state.withLock { state -> (Report, Bool) in
      var report = Report()
      let before = state.problems
      for _ in 0..<Self.tries {
        if compareAll(&state, &report) { break }
      }
      state.problems = report.problems
      let isNew = report.problems.contains { before[$0.key]?.code != $0.value.code }
      return (report, isNew || !report.stored.isEmpty || !report.taken.isEmpty)
    }
    if isNews { onSync?(report) }
    return report
  }

  /// Sets a mirrored key on both sides, durably.
  ///
  /// Blocks as `KeyValueStore.set(_:forKey:)` does: at another program's node for up to 30 seconds.
  ///
  /// - Parameters:
  ///   - value: The value; nil removes the key.
  ///   - key: One of ``keys``.
  /// - Throws: `KithError` as `KeyValueStore.set(_:forKey:)` does, `unsupportedValue` if
  ///   `UserDefaults` cannot hold the value, or `invalidKey` if the key is not mirrored; then
  ///   nothing has changed. With a storage code, both sides show the value, but it is not durable
  ///   yet.
  /// - Complexity: O(*n*) in the size of the value, and one write to the disk on each side.
  public func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
    try write(value, key) { () throws(KithError) in try store.set(value, forKey: key) }
  }

  /// Sets a mirrored key on both sides; see ``set(_:forKey:)``.
  ///
  /// Members of a stored dictionary that the type does not know stay, as with
  /// `KeyValueStore.set(_:for:)`. The coding of the type, and the key's `migrating`, may use the
  /// mirror.
  ///
  /// - Throws: As ``set(_:forKey:)`` does, and `conflict` as `KeyValueStore.set(_:for:)` does.
  public func set<Value>(_ value: Value, for key: StoreKey<Value>) throws(KithError) {
    // The program's code makes the value, so the mirror is not locked yet.
    try store.replace(value, for: key) { new, expected throws(KithError) in
      try write(new, key.name) { () throws(KithError) in
        try store.set(new, forKey: key.name, expecting: expected)
      }
    }
  }

  /// Sets a key of the defaults to the value that `body` writes to the store, durably.
  private func write(
    _ value: PropertyListValue?, _ key: String, _ body: () throws(KithError) -> Void
  ) throws(KithError) {
    guard keys.contains(key) else {
      throw KithError(
        .invalidKey, "The key is not mirrored. Name it when the mirror is made.",
        key: KeyValueStore.Key(key))
    }
    if let value, !DefaultsValue.isHeld(value) { throw KithError.notHeld(key) }
    let result = state.withLock { state -> Result<Void, KithError> in
      _ = look(&state)
      do throws(KithError) {
        try body()
        state.defaults.set(value, forKey: key)
        try store.flush()
      } catch {
        return .failure(error)
      }
      let kept = state.defaults.kept(value, forKey: key)
      state.baselines[key] = Baseline(store: value, defaults: kept)
      state.problems[key] = nil
      save(&state)
      return .success(())
    }
    try result.get()
  }

  /// The store's values, of one moment and account. Drops another account's baselines, whose values
  /// were never in this store.
  private func look(_ state: inout State) -> [KeyValueStore.Key: PropertyListValue] {
    let (device, shown) = store.owned
    if device != state.device { state.baselines = [:] }
    state.device = device
    return shown
  }

  /// Compares all keys with the store of one account, and saves what both sides hold. Returns false
  /// if the account has changed meanwhile: what was read of the old one's store is not true of the
  /// new one's.
  private func compareAll(_ state: inout State, _ report: inout Report) -> Bool {
    report.problems = [:]
    let shown = look(&state)
    let (device, baselines) = (state.device, state.baselines)
    for key in keys where state.device == device {
      reconcile(key, shown[KeyValueStore.Key(key)], &state, &report)
    }
    // Also if no copy met the new account's values.
    _ = look(&state)
    // Copies of several accounts may be of one key.
    report.stored = Set(report.stored).sorted()
    report.taken = Set(report.taken).sorted()
    guard state.device == device else { return false }
    if !report.stored.isEmpty { resolve(baselines, &state, &report) }
    if state.baselines != baselines { save(&state) }
    return true
  }

  // MARK: One key

  /// How often a key is compared in one turn, if others write it to the store meanwhile, and how
  /// often all are, if the account changes.
  private static let tries = 100

  /// Copies a key's change, unless the account has changed.
  private func reconcile(
    _ key: String, _ shown: PropertyListValue?, _ state: inout State, _ report: inout Report
  ) {
    let device = state.device
    var (shown, tries) = (shown, Self.tries)
    while let error = compare(key, shown, &state, &report) {
      tries -= 1
      guard error.code == .unexpectedValue, tries > 0 else {
        report.problems[key] = error
        return
      }
      shown = look(&state)[KeyValueStore.Key(key)]
      guard state.device == device else { return }
    }
  }

  /// Copies a change to the other side. Returns why it could not: with `unexpectedValue`, the store
  /// shows something else than `shown` by now.
  private func compare(
    _ key: String, _ shown: PropertyListValue?, _ state: inout State, _ report: inout Report
  ) -> KithError? {
    let baseline = state.baselines[key] ?? .nothing
    let local: PropertyListValue?
    do throws(KithError) {
      local = try state.defaults.value(key, since: baseline)
    } catch {
      return error
    }
    let isOverridden = state.defaults.isOverridden(key)
    let now = Baseline(store: shown, defaults: local)
    let isStoreNew = now.store != baseline.store
    let isLocalNew = now.defaults != baseline.defaults && !isOverridden
    guard isStoreNew || isLocalNew else { return nil }
    if Baseline.isSame(shown, local) && !isOverridden {
      state.baselines[key] = now
      return nil
    }
    if isStoreNew && (shown != nil || !isLocalNew) { return take(shown, key, &state, &report) }
    do throws(KithError) {
      // Not over a value that another program or task has written since the store was read.
      try store.set(local, forKey: key, expecting: shown)
    } catch {
      return error
    }
    state.baselines[key] = Baseline(store: local, sameAs: now)
    report.stored.append(key)
    return nil
  }

  private func take(
    _ value: PropertyListValue?, _ key: String, _ state: inout State, _ report: inout Report
  ) -> KithError? {
    if let value, !DefaultsValue.isHeld(value) { return .notHeld(key) }
    state.defaults.set(value, forKey: key)
    let kept = state.defaults.kept(value, forKey: key)
    state.baselines[key] = Baseline(store: value, defaults: kept)
    report.taken.append(key)
    return nil
  }

  /// Makes copies to the store durable before their baselines. Otherwise, after a crash, the store's
  /// old value would look new and replace the program's.
  private func resolve(_ old: [String: Baseline], _ state: inout State, _ report: inout Report) {
    do throws(KithError) {
      try store.flush()
    } catch {
      for key in report.stored {
        state.baselines[key] = old[key]
        report.problems[key] = error
      }
      report.stored = []
    }
  }

  private func save(_ state: inout State) {
    state.baselines = state.baselines.filter { $0.value != .nothing && keys.contains($0.key) }
    state.defaults.save(state.baselines, of: state.device.hex)
  }
}

extension KithError {
  static func notHeld(_ key: String) -> KithError {
    KithError(
      .unsupportedValue,
      "The value holds a date that UserDefaults cannot keep. It stays in the store alone.",
      key: KeyValueStore.Key(key))
  }
}
