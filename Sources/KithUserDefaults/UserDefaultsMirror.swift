internal import Dispatch
public import Kith
internal import KithCrypto
public import ServiceLifecycle
internal import Synchronization

/// Keeps chosen keys of `UserDefaults` and of a store equal, in both directions, including
/// removals.
///
/// ```swift
/// let mirror = UserDefaultsMirror(store, keys: ["theme", "fontSize"])
/// // beside accounts.run(), or in the same ServiceGroup
/// try await mirror.run()
/// // to write
/// try mirror.set("dark", forKey: "theme")
/// ```
/// Code that reads does not change: `UserDefaults.standard.string(forKey: "theme")`. To write, call
/// ``set(_:forKey:)``. On Linux `UserDefaults` announces no change, traps on unsupported values,
/// and loses at exit values that `synchronize()` did not write. The next ``sync()`` copies a write
/// through `UserDefaults.set`: call it after such writes, or give an `interval`.
///
/// **Conflicts.** The mirror saves in the defaults what both sides held at the last comparison, so
/// it works across restarts. A side that has changed since is copied to the other. If both have
/// changed, and at the first comparison:
///
/// - A value of the store wins, so a new device never overwrites the account's data.
/// - A value that only the defaults hold is written to the store. While nobody is signed in, that
///   write is local; on signing in, the account's value wins.
///
/// Signing in or out starts with a first comparison again, so no setting is lost with its account.
///
/// Values of `register(defaults:)` are never copied, and setting a key to its registered value
/// removes it. A key that the command line overrides (`-theme dark`) is not read during that run.
///
/// **Limits.** On Linux, one date that is not finite or is millions of years away makes
/// `UserDefaults` lose all other values. Such a value stays in the store alone, and a value that
/// the store refuses stays in the defaults alone; ``problems`` lists both. The defaults' file drops
/// fractions of a second of dates; the store keeps them.
///
/// Observers that a write of the mirror calls, such as an `onChange` of `withObservationTracking`,
/// must not use the mirror: it is locked.
public final class UserDefaultsMirror: Sendable {
  /// The store.
  public let store: KeyValueStore
  /// The mirrored keys, in order; no other key is touched.
  public let keys: [String]
  let interval: Duration?
  let onSync: (@Sendable (Report) -> Void)?
  let state: Mutex<State>
  /// For ``run()``: a comparison blocks for the disk, or for another program's node.
  private let queue = DispatchQueue(label: "kith.user-defaults-mirror")

  struct State {
    var defaults: Defaults
    var device: DeviceID
    var baselines: [String: Baseline]
    var problems: [String: KithError] = [:]
  }

  /// The result of one comparison.
  public struct Report: Sendable {
    /// Keys copied from the defaults to the store, in order.
    public var stored: [String] = []
    /// Keys copied from the store to the defaults, in order.
    public var taken: [String] = []
    /// Keys that could not be copied, with the reasons.
    public var problems: [String: KithError] = [:]
  }

  /// Makes a mirror, which copies nothing before ``run()``, ``sync()`` or ``set(_:forKey:)``.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - keys: The keys to mirror, the same on both sides.
  ///   - suite: The suite of `UserDefaults(suiteName:)`; nil: the standard defaults.
  ///   - interval: How often ``run()`` looks for writes through `UserDefaults.set`; nil: only at
  ///     its beginning and end.
  ///   - onSync: Called after each comparison that copied a value or met a new problem, on the
  ///     thread that compared. Programs on Linux learn only here that their settings changed.
  public convenience init(
    _ store: KeyValueStore, keys: some Sequence<String>, suite: String? = nil,
    interval: Duration? = nil, onSync: (@Sendable (Report) -> Void)? = nil
  ) {
    self.init(
      store, keys: keys, defaults: Defaults(suite: suite, store: "\(store.identifier)"),
      interval: interval, onSync: onSync)
  }

  init(
    _ store: KeyValueStore, keys: some Sequence<String>, defaults: sending Defaults,
    interval: Duration? = nil, onSync: (@Sendable (Report) -> Void)? = nil
  ) {
    self.store = store
    self.keys = Set(keys).sorted()
    self.interval = interval
    self.onSync = onSync
    let device = store.owned.device
    let baselines = defaults.baselines(of: device.hex)
    state = Mutex(State(defaults: defaults, device: device, baselines: baselines))
  }

  /// The keys that could not be copied at the last comparison, with the reasons.
  public var problems: [String: KithError] { state.withLock { $0.problems } }
}

extension UserDefaultsMirror: Service {
  /// Mirrors until the task is cancelled, its service group shuts down or the accounts are closed.
  ///
  /// It compares both sides at the start, on each change of the store, at each `interval`, and at
  /// the end, so the program's last writes are not lost.
  ///
  /// In a `ServiceGroup`, list the mirror after its `Accounts`: services end in reverse order.
  public func run() async throws {
    let changes = store.snapshotAndChanges().changes
    await syncOnQueue()
    await cancelWhenGracefulShutdown {
      var bodies: [@Sendable () async -> Void] = [
        {
          let keys = Set(self.keys.map { KeyValueStore.Key($0) })
          for await change in changes
          where change.isJoined
            || change.items.contains(where: { keys.contains($0.key) })
          {
            await self.syncOnQueue()
          }
        }
      ]
      if let interval = self.interval {
        bodies.append {
          while (try? await Task.sleep(for: interval)) != nil { await self.syncOnQueue() }
        }
      }
      await race(bodies)
    }
    await syncOnQueue()
  }

  private func syncOnQueue() async { await queue.run { _ = self.sync() } }
}
