#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Synchronization

  /// The program's configuration, fixed at the first use of the store.
  final class ProgramConfiguration: Sendable {
    private struct State {
      /// Those that code chose, if it did.
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
