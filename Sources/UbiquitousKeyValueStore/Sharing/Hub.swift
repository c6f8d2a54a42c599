#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Logging
  internal import Synchronization

  /// What all objects on the same data share: the data, who is alive, and who tells them.
  final class Hub: Sendable {
    /// What it stands on, once it is in use.
    private struct Opened {
      var basis: Basis
      var serving: Task<Void, Never>
    }

    /// What was opened, and how.
    struct Basis: Sendable {
      var backing: any Backing
      /// The accounts that it is of, or why there are none.
      var accounts: Result<Accounts, KithError> = .failure(
        KithError(.missing, "The store is the program's own, and of no account."))
      /// Whether the program said which store it means; `synchronize()` is false otherwise.
      var isConfigured = true
      var trapsOnInvalidKeys = false
      var logger: Logger
    }

    /// The program's hub.
    static let shared = Hub { UbiquityBootstrap.setup.open() }

    private let open: @Sendable () -> Basis
    private let gather: @Sendable () async -> Void
    private let opened = Mutex<Opened?>(nil)
    private let objects = LiveObjects()
    private let poster: Poster
    /// The failure that was logged last: programs synchronise after every write, and one failing
    /// disk is told of once.
    private let failure = Mutex<KithError.Code?>(nil)

    /// Makes a hub that opens what it stands on when it is first used.
    ///
    /// - Parameters:
    ///   - gather: Waits while changes are gathered for one notification.
    ///   - open: Opens what it stands on.
    init(
      gathering gather: @escaping @Sendable () async -> Void = Server.gather,
      opening open: @escaping @Sendable () -> Basis
    ) {
      self.gather = gather
      self.open = open
      poster = Poster(objects: objects)
    }

    deinit {
      opened.withLock { $0?.serving.cancel() }
    }

    /// What the data is in.
    var backing: any Backing { basis.backing }

    /// Opens what it stands on where it is known already what that is. A program that configures it
    /// in code may still do so otherwise.
    func openIfConfigured() {
      // Looking for the configuration reads a file; programs ask for `default` at every turn.
      if opened.withLock({ $0 != nil }) { return }
      if UbiquityBootstrap.setup.isConfigured { _ = basis }
    }

    /// What it stands on. The first use opens it, while others wait.
    private var basis: Basis {
      opened.withLock { opened in
        if let opened { return opened.basis }
        let basis = open()
        let server = Server(backing: basis.backing, poster: poster, gather: gather)
        // Made before anybody reads, so that nothing falls between.
        let changes = basis.backing.changes
        let account = basis.backing.account
        // Nobody awaits this task: Apple's class has no `run()`. Its objects are made by code that
        // does not wait, and hear of changes as long as the process lives.
        let serving = Task.detached { await server.run(changes, since: account) }
        opened = Opened(basis: basis, serving: serving)
        return basis
      }
    }

    /// Tells an object of changes from here on, as long as it lives.
    func add(_ object: NSUbiquitousKeyValueStore) { objects.add(object) }

    /// The accounts that the data is of.
    var accounts: Result<Accounts, KithError> { basis.accounts }

    /// The account that is signed in, opaque. Programs ask for it first of all; that does not settle
    /// a configuration that is still to come.
    var identityToken: NSData? {
      openIfConfigured()
      let account = opened.withLock { $0?.basis.backing.account }
      return account.map { NSData(data: Data($0.bytes)) }
    }

    /// Sets a key's value, and says what came of it as Apple's class does: not to the caller.
    func set(_ object: Any?, forKey key: String) {
      let basis = basis
      let value: PropertyListValue?
      do throws(UnsupportedValue) {
        value = try object.map { object throws(UnsupportedValue) in
          try PropertyListValue(foundationObject: object)
        }
      } catch {
        basis.logger.error(
          "a value that property lists cannot hold was ignored", metadata: ["reason": "\(error)"])
        return
      }
      do throws(KithError) {
        try basis.backing.set(value, forKey: key)
      } catch {
        refused(error, isRemoval: value == nil, key: key, basis)
      }
    }

    private func refused(
      _ error: KithError, isRemoval: Bool, key: String, _ basis: Basis
    ) {
      let logger = basis.logger
      switch error.code {
      case .invalidKey:
        // Nothing is there to be removed.
        if isRemoval { return }
        if basis.trapsOnInvalidKeys { fatalError(error.message) }
        logger.error("a write was refused", metadata: ["reason": "\(error.message)"])
        poster.refuse(key)
      case .valueTooLarge, .quotaExceeded, .tooManyDrafts, .refusalsNotTaken:
        logger.error("a write was refused", metadata: ["reason": "\(error.message)"])
        poster.refuse(key)
      case .unsupportedValue:
        logger.error(
          "a value that property lists cannot hold was ignored",
          metadata: ["reason": "\(error.message)"])
      default:
        log(error, logger)
      }
    }

    /// Makes everything durable; see ``NSUbiquitousKeyValueStore/synchronize()``.
    func synchronize() -> Bool {
      let basis = basis
      do throws(KithError) {
        try basis.backing.flush()
      } catch {
        log(error, basis.logger)
        return false
      }
      failure.withLock { $0 = nil }
      return basis.isConfigured
    }

    private func log(_ error: KithError, _ logger: Logger) {
      let isNew = failure.withLock { failure in
        defer { failure = error.code }
        return failure != error.code
      }
      if isNew { logger.error("the store cannot write", metadata: ["reason": "\(error)"]) }
    }
  }
#endif
