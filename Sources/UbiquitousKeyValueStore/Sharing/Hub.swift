#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Logging
  internal import Synchronization

  /// The data that several objects share.
  final class Hub: Sendable {
    private struct Opened {
      var basis: Basis
      var serving: Task<Void, Never>
    }

    struct Basis: Sendable {
      var backing: any Backing
      /// The accounts of the data, or the reason why there are none.
      var accounts: Result<Accounts, KithError> = .failure(
        KithError(.missing, "The store is the program's own, and of no account."))
      /// Whether the program named its store; otherwise `synchronize()` returns false.
      var isConfigured = true
      var trapsOnInvalidKeys = false
      var logger: Logger
    }

    static let shared = Hub { UbiquityBootstrap.setup.open() }

    private let open: @Sendable () -> Basis
    private let gather: @Sendable () async -> Void
    private let opened = Mutex<Opened?>(nil)
    private let poster = Poster()
    /// The last logged failure: programs synchronise after every write, and a failing disk is
    /// logged once.
    private let failure = Mutex<KithError.Code?>(nil)

    /// Opens its data at the first use.
    init(
      gathering gather: @escaping @Sendable () async -> Void = Server.gather,
      opening open: @escaping @Sendable () -> Basis
    ) {
      self.gather = gather
      self.open = open
    }

    deinit {
      opened.withLock { $0?.serving.cancel() }
    }

    var backing: any Backing { basis.backing }

    /// Opens the store if the program is configured; otherwise code may still configure it.
    func openIfConfigured() {
      // This reads a file, and programs read `default` often.
      if opened.withLock({ $0 != nil }) { return }
      if UbiquityBootstrap.setup.isConfigured { begin() }
    }

    /// Opens the store, so that observers hear of changes before anything is read.
    func begin() { _ = basis }

    /// Opened at the first use, while other threads wait.
    private var basis: Basis {
      opened.withLock { opened in
        if let opened { return opened.basis }
        let basis = open()
        let server = Server(backing: basis.backing, poster: poster, gather: gather)
        // Before any read, so that no change is missed.
        let changes = basis.backing.changes
        let account = basis.backing.account
        // Never awaited: Apple's class has no `run()`, and its objects get changes for as long as
        // the process lives.
        let serving = Task.detached { await server.run(changes, since: account) }
        opened = Opened(basis: basis, serving: serving)
        return basis
      }
    }

    func add(_ object: NSUbiquitousKeyValueStore) { poster.add(object) }

    var accounts: Result<Accounts, KithError> { basis.accounts }

    /// The account that is signed in. Reading it does not fix the configuration, since programs
    /// read it first.
    var identityToken: NSData? {
      openIfConfigured()
      let account = opened.withLock { $0?.basis.backing.account }
      return account.map { NSData(data: Data($0.bytes)) }
    }

    /// Sets a key's value. As in Apple's class, a refusal is announced, not returned.
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
        // There is nothing to remove.
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
