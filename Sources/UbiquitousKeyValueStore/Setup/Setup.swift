#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Logging
  internal import Synchronization

  /// The program's configuration, fixed at the first use of the store.
  final class Setup: Sendable {
    private struct State {
      var code: UbiquityBootstrap.Configuration?
      var isSettled = false
    }

    private let state = Mutex(State())

    func configure(_ configuration: UbiquityBootstrap.Configuration) throws(KithError) {
      if let text = configuration.storeIdentifier, StoreIdentifier(text) == nil {
        throw KithError(
          .invalidStoreIdentifier,
          "A store identifier has 1 to \(StoreIdentifier.maximumBytes) bytes of UTF-8 and no "
            + "control characters.")
      }
      guard configuration.policy.isWithinBounds else {
        throw KithError(
          .invalidPolicy, "The limits are beyond Policy.maximum, or negative. Lower them.")
      }
      let isLate = state.withLock { state in
        if !state.isSettled { state.code = configuration }
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
      let code = state.withLock { $0.code }
      return Settings(resolving: Self.sources(code)).isConfigured
    }

    /// Opens the configured store; if that fails, one in memory.
    func open() -> Hub.Basis {
      let code = state.withLock { state in
        state.isSettled = true
        return state.code
      }
      let settings = Settings(resolving: Self.sources(code))
      let logger = settings.configuration.logger
      for warning in settings.warnings { logger.warning("\(warning)") }
      let backing: any Backing
      let accounts: Result<Accounts, KithError>
      do throws(KithError) {
        let opened = try AccountsBacking(settings)
        backing = opened
        accounts = .success(opened.accounts)
      } catch {
        logger.error(
          "the store's directory cannot be used; what is set now lasts until the program ends",
          metadata: ["directory": "\(settings.directory)", "reason": "\(error)"])
        backing = MemoryBacking(because: error, policy: settings.configuration.policy)
        accounts = .failure(error)
      }
      return Hub.Basis(
        backing: backing, accounts: accounts, isConfigured: settings.isConfigured,
        trapsOnInvalidKeys: settings.configuration.trapsOnInvalidKeys, logger: logger)
    }

    private static func sources(_ code: UbiquityBootstrap.Configuration?) -> SettingSources {
      let executable =
        Bundle.main.executableURL?.resolvingSymlinksInPath().path(percentEncoded: false)
        ?? CommandLine.arguments.first ?? ""
      let folder = URL(filePath: executable).deletingLastPathComponent()
      let environment = ProcessInfo.processInfo.environment
      let home =
        environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
        ?? FileManager.default.homeDirectoryForCurrentUser.path(percentEncoded: false)
      return SettingSources(
        code: code, environment: environment,
        file: FileManager.default.contents(
          atPath: folder.appending(path: ConfigurationFile.fileName).path(percentEncoded: false)),
        executable: executable, home: home)
    }
  }
#endif
