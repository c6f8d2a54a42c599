internal import Foundation
public import Kith
internal import KithCrypto
internal import Synchronization

/// Keeps chosen keys of `UserDefaults` and of a store alike, in both directions, removal included.
///
/// ```swift
/// let mirror = UserDefaultsMirror(store, keys: ["theme", "fontSize"])
/// // beside node.run(), or in the same ServiceGroup
/// try await mirror.run()
/// // where the program writes
/// try mirror.set("dark", forKey: "theme")
/// ```
/// Reads stay what they are, `UserDefaults.standard.string(forKey: "theme")`. For writes there is
/// ``set(_:forKey:)``: on Linux `UserDefaults` tells nobody of a change, traps on what it does not
/// support, and forgets at exit what `synchronize()` did not write, so the mirror writes both sides
/// itself and sees to the disk. Code that goes on calling `UserDefaults.set` is heard of at the
/// next ``sync()``: call it after such writes, or give an `interval`.
///
/// **Who wins.** The mirror remembers, in the defaults themselves, what both sides held when it last
/// looked, also over restarts. A side that has changed since is copied to the other. Where both
/// have, and at the very first look:
///
/// - what the store holds wins, so the defaults of a new device never overwrite the account's data;
/// - what only the defaults hold is written to the store. While nobody is signed in
///   that is local, and gives way on signing in to what the account has.
///
/// Signing in or out begins anew with a first look: no setting is lost with the account that it came
/// from.
///
/// Values that come from `register(defaults:)` are not set, and are never copied; setting a key back
/// to just its registered value counts as removing it. A key that the command line overrides
/// (`-theme dark`) is not read while it does.
///
/// **What is left out.** `UserDefaults` on Linux cannot hold dates that are not finite or lie
/// millions of years away: written to its file, one such date loses all other values. Such a value
/// stays in the store alone, and is among the ``problems``; so does one that the store refuses stay
/// in the defaults alone. Fractions of a second of dates are lost in the defaults' file, and kept
/// in the store.
public final class UserDefaultsMirror: Sendable {
  /// The store.
  public let store: KeyValueStore
  /// The keys that are mirrored, in order; no other is touched.
  public let keys: [String]
  let interval: Duration?
  let onSync: (@Sendable (Report) -> Void)?
  let state: Mutex<State>

  struct State {
    var defaults: Defaults
    /// Whose store the marks are of.
    var standing: Standing
    var marks: [String: Mark]
    var problems: [String: KithError] = [:]
  }

  /// What one look at both sides did.
  public struct Report: Sendable {
    /// Keys that went from the defaults to the store, in order.
    public var stored: [String] = []
    /// Keys that went from the store to the defaults, in order.
    public var taken: [String] = []
    /// Keys that could not be copied, and why.
    public var problems: [String: KithError] = [:]
  }

  /// Makes a mirror. Nothing is copied before ``run()``, ``sync()`` or ``set(_:forKey:)``.
  ///
  /// - Parameters:
  ///   - store: The store.
  ///   - keys: The keys to mirror, the same on both sides.
  ///   - suite: The suite of the defaults, as `UserDefaults(suiteName:)` takes it; nil: the
  ///     standard ones.
  ///   - interval: How often ``run()`` looks for what the program wrote with `UserDefaults.set`;
  ///     nil: only at its beginning and end.
  ///   - onSync: Hears of every look that copied something or met a new problem, on the thread that
  ///     looked. `UserDefaults` announces nothing on Linux: here a program learns that its settings
  ///     have changed.
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
    let standing = store.standing
    let marks = defaults.marks(of: standing.device?.hex)
    state = Mutex(State(defaults: defaults, standing: standing, marks: marks))
  }

  /// The keys that could not be copied when the mirror last looked, and why.
  public var problems: [String: KithError] { state.withLock { $0.problems } }
}
