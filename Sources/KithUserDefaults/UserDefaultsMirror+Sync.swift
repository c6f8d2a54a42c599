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
      let shown = look(&state)
      let baselines = state.baselines
      for key in keys { reconcile(key, shown[KeyValueStore.Key(key)], &state, &report) }
      if !report.stored.isEmpty { resolve(baselines, &state, &report) }
      state.problems = report.problems
      if state.baselines != baselines { save(&state) }
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
    guard keys.contains(key) else {
      throw KithError(
        .invalidKey, "The key is not mirrored. Name it when the mirror is made.",
        key: KeyValueStore.Key(key))
    }
    if let value, !DefaultsValue.isHeld(value) { throw .notHeld(key) }
    let result = state.withLock { state -> Result<Void, KithError> in
      _ = look(&state)
      do throws(KithError) {
        try store.set(value, forKey: key)
        state.defaults.set(value, forKey: key)
        try store.flush()
      } catch {
        return .failure(error)
      }
      state.baselines[key] = Baseline(store: value, defaults: state.defaults.raw(key).value)
      state.problems[key] = nil
      save(&state)
      return .success(())
    }
    try result.get()
  }

  /// Sets a mirrored key on both sides; see ``set(_:forKey:)``.
  ///
  /// - Throws: As ``set(_:forKey:)`` does.
  public func set<Value>(_ value: Value, for key: StoreKey<Value>) throws(KithError) {
    try set(try value.storedValue(), forKey: key.name)
  }

  /// The store's values, of one moment and account. Drops another account's baselines, whose values
  /// were never in this store.
  private func look(_ state: inout State) -> [KeyValueStore.Key: PropertyListValue] {
    let (device, shown) = store.owned
    if device != state.device { state.baselines = [:] }
    state.device = device
    return shown
  }

  // MARK: One key

  private func reconcile(
    _ key: String, _ shown: PropertyListValue?, _ state: inout State, _ report: inout Report
  ) {
    let baseline = state.baselines[key] ?? .nothing
    let local: PropertyListValue?
    do throws(KithError) {
      local = try state.defaults.value(key, since: baseline)
    } catch {
      report.problems[key] = error
      return
    }
    let isOverridden = state.defaults.isOverridden(key)
    let now = Baseline(store: shown, defaults: local)
    let isStoreNew = now.store != baseline.store
    let isLocalNew = now.defaults != baseline.defaults && !isOverridden
    guard isStoreNew || isLocalNew else { return }
    if Baseline.isSame(shown, local) && !isOverridden {
      state.baselines[key] = now
    } else if isStoreNew && (shown != nil || !isLocalNew) {
      take(shown, key, &state, &report)
    } else {
      put(local, key, now, &state, &report)
    }
  }

  private func take(
    _ value: PropertyListValue?, _ key: String, _ state: inout State, _ report: inout Report
  ) {
    if let value, !DefaultsValue.isHeld(value) {
      report.problems[key] = .notHeld(key)
      return
    }
    state.defaults.set(value, forKey: key)
    // Read back, because the defaults may change a value.
    state.baselines[key] = Baseline(store: value, defaults: state.defaults.raw(key).value)
    report.taken.append(key)
  }

  private func put(
    _ value: PropertyListValue?, _ key: String, _ baseline: Baseline, _ state: inout State,
    _ report: inout Report
  ) {
    do throws(KithError) {
      try store.set(value, forKey: key)
      state.baselines[key] = Baseline(store: value, sameAs: baseline)
      report.stored.append(key)
    } catch {
      report.problems[key] = error
    }
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
