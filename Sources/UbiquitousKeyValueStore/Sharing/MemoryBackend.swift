#if !canImport(Darwin)
  internal import Kith
  internal import Synchronization

  /// A store in memory, used if the directory cannot be. Flushing throws the reason.
  final class MemoryBackend: StoreBackend {
    private let state = Mutex<[KeyValueStore.Key: PropertyListValue]>([:])
    private let problem: KithError
    private let policy: KeyValueStore.Policy

    init(because problem: KithError, policy: KeyValueStore.Policy = .standard) {
      self.problem = problem
      self.policy = policy
    }

    func value(forKey key: String) -> PropertyListValue? {
      state.withLock { $0[KeyValueStore.Key(key)] }
    }
    var values: [KeyValueStore.Key: PropertyListValue] { state.withLock { $0 } }

    func set(_ value: PropertyListValue?, forKey key: String) throws(KithError) {
      let key = KeyValueStore.Key(key)
      guard let value else { return state.withLock { $0[key] = nil } }
      guard (1...policy.keyBytes).contains(key.size) else {
        throw KithError(
          .invalidKey, "A key has 1 to \(policy.keyBytes) bytes of UTF-8.")
      }
      // The data is lost at exit anyway, so limiting the number of keys is enough.
      let hasRoom = state.withLock { values in
        guard values[key] != nil || values.count < policy.keys else { return false }
        values[key] = value
        return true
      }
      guard hasRoom else {
        throw KithError(
          .quotaExceeded, "The store has \(policy.keys) keys. Remove something first.")
      }
    }

    func flush() throws(KithError) { throw problem }
  }
#endif
