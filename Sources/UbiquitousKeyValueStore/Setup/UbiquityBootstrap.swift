#if !canImport(Darwin)
  internal import Foundation
  public import Kith
  public import KithCore
  internal import Logging
  internal import Synchronization

  /// Names the store of a program, in place of Apple's entitlement.
  ///
  /// ```swift
  /// try UbiquityBootstrap.configure(storeIdentifier: "com.example.Bookmarks")
  /// ```
  /// Call it first in the program: the first use of the store fixes the configuration. Each setting
  /// comes from the first source that has it: code, the environment, `kith.json` beside the
  /// executable. See <doc:Configuration>.
  public enum UbiquityBootstrap {
    static let configuration = ProgramConfiguration()

    /// Configures the program's store; the last call before the first use counts.
    ///
    /// - Parameters:
    ///   - storeIdentifier: The store's identifier, such as `com.example.Bookmarks`; nil: from the
    ///     other sources. Programs with the same one share the store.
    ///   - directory: The directory; nil: from the other sources, by default `$XDG_DATA_HOME/kith`,
    ///     which all programs of the user share.
    ///   - policy: The store's limits, which must be the same on all devices.
    ///   - trapsOnInvalidKeys: Whether an invalid key ends the program, as on Apple's systems.
    ///     Otherwise the write is logged, refused, and announced as a quota violation.
    ///   - adjust: Changes how the accounts are opened; it gets what the other sources say. The log
    ///     has the level `notice` by default.
    /// - Throws: `KithError` with `invalidStoreIdentifier`, `invalidPolicy`, or, after the store's
    ///   first use, `alreadyInUse`; then nothing has changed.
    public static func configure(
      storeIdentifier: String? = nil, directory: String? = nil, policy: Policy = .standard,
      trapsOnInvalidKeys: Bool = false, _ adjust: (inout Accounts.Configuration) -> Void = { _ in }
    ) throws(KithError) {
      try configuration.configure(
        storeIdentifier: storeIdentifier, directory: directory, policy: policy,
        trapsOnInvalidKeys: trapsOnInvalidKeys, adjust)
    }

    /// The accounts of the program's store, for signing in and out.
    ///
    /// They are served already: do not call their `run()`. The first use fixes the configuration.
    ///
    /// ```swift
    /// try await UbiquityBootstrap.accounts.signOut()
    /// ```
    ///
    /// - Throws: `KithError` if the directory cannot be used; the store is in memory then.
    public static var accounts: Accounts {
      get throws(KithError) { try SharedStore.shared.accounts.get() }
    }

    /// Makes an object of Apple's class on any store, for tests and for programs with several
    /// stores.
    ///
    /// The program's configuration does not affect it. It posts notifications from now on, also if
    /// nothing is read.
    ///
    /// - Parameter store: The store. The caller still runs and closes it.
    /// - Returns: A new object for each call.
    public static func makeStore(on store: KeyValueStore) -> NSUbiquitousKeyValueStore {
      let shared = SharedStore {
        SharedStore.Opening(backend: KithBackend(store: store), logger: Logger(label: "kith"))
      }
      shared.begin()
      return NSUbiquitousKeyValueStore(shared: shared)
    }
  }

  extension KithError.Code {
    /// The program's store is in use, so its configuration is fixed.
    public static let alreadyInUse = Self(description: "alreadyInUse")
  }

  /// The program's configuration, fixed at the first use of the store.
  final class ProgramConfiguration: Sendable {
    private struct State {
      /// The settings that code chose; nil: it chose none.
      var settings: Settings?
      var isSettled = false
    }

    private let state = Mutex(State())

    /// See ``UbiquityBootstrap/configure(storeIdentifier:directory:policy:trapsOnInvalidKeys:_:)``.
    func configure(
      storeIdentifier: String? = nil, directory: String? = nil,
      policy: KeyValueStore.Policy = .standard, trapsOnInvalidKeys: Bool = false,
      _ adjust: (inout Accounts.Configuration) -> Void = { _ in }
    ) throws(KithError) {
      let checked = try Node.checked(storeIdentifier ?? "unnamed", policy)
      var settings = Settings(
        resolving: Self.sources, storeIdentifier: storeIdentifier == nil ? nil : checked,
        directory: directory, code: adjust)
      settings.policy = policy
      settings.trapsOnInvalidKeys = trapsOnInvalidKeys
      let isLate = state.withLock { state in
        if !state.isSettled { state.settings = settings }
        return state.isSettled
      }
      guard !isLate else {
        throw KithError(
          .alreadyInUse,
          "The store is in use already. Call UbiquityBootstrap.configure first thing in the program."
        )
      }
    }

    var isConfigured: Bool {
      (state.withLock { $0.settings } ?? Settings(resolving: Self.sources)).isConfigured
    }

    /// Opens the configured store; if that fails, one in memory.
    func open() -> SharedStore.Opening {
      let chosen = state.withLock { state in
        state.isSettled = true
        return state.settings
      }
      let settings = chosen ?? Settings(resolving: Self.sources)
      let logger = settings.accounts.logger
      for warning in settings.warnings { logger.warning("\(warning)") }
      let backend: any StoreBackend
      let accounts: Result<Accounts, KithError>
      do throws(KithError) {
        let opened = try Accounts(settings.accounts)
        backend = KithBackend(
          store: try opened.store(settings.storeIdentifier.rawValue, policy: settings.policy),
          accounts: opened)
        accounts = .success(opened)
      } catch {
        logger.error(
          "the store's directory cannot be used; new values last until the program ends",
          metadata: ["directory": "\(settings.accounts.directory)", "reason": "\(error)"])
        backend = MemoryBackend(because: error, policy: settings.policy)
        accounts = .failure(error)
      }
      return SharedStore.Opening(
        backend: backend, accounts: accounts, isConfigured: settings.isConfigured,
        trapsOnInvalidKeys: settings.trapsOnInvalidKeys, logger: logger)
    }

    private static var sources: SettingSources {
      let executable =
        Bundle.main.executableURL?.resolvingSymlinksInPath().path(percentEncoded: false)
        ?? CommandLine.arguments.first ?? ""
      let folder = URL(filePath: executable).deletingLastPathComponent()
      let environment = ProcessInfo.processInfo.environment
      let home =
        environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        ?? FileManager.default.homeDirectoryForCurrentUser.path(percentEncoded: false)
      return SettingSources(
        environment: environment,
        file: FileManager.default.contents(
          atPath: folder.appending(path: ConfigurationFile.fileName).path(percentEncoded: false)),
        executable: executable, home: home)
    }
  }
#endif
