#if !canImport(Darwin)
  internal import Foundation
  internal import Kith
  internal import Logging
  internal import Synchronization

  /// The data that several objects share.
  final class SharedStore: Sendable {
    private struct Opened {
      var opening: Opening
      var serving: Task<Void, Never>
    }

    struct Opening: Sendable {
      var backend: any StoreBackend
      /// The accounts of the data, or the reason why there are none.
      var accounts: Result<Accounts, KithError> = .failure(
        KithError(.missing, "The store is the program's own, and of no account."))
      /// Whether the program named its store; otherwise `synchronize()` returns false.
      var isConfigured = true
      var trapsOnInvalidKeys = false
      var logger: Logger
    }

    static let shared = SharedStore { UbiquityBootstrap.configuration.open() }

    private let open: @Sendable () -> Opening
    private let coalesce: @Sendable () async -> Void
    private let opened = Mutex<Opened?>(nil)
    private let poster = NotificationPoster()
    /// The last logged failure: programs synchronise after every write, and a failing disk is
    /// logged once.
    private let failure = Mutex<KithError.Code?>(nil)

    /// Opens its data at the first use.
    init(
      coalescing coalesce: @escaping @Sendable () async -> Void = ChangeNotifier.coalesce,
      opening open: @escaping @Sendable () -> Opening
    ) {
      self.coalesce = coalesce
      self.open = open
    }

    deinit {
      opened.withLock { $0?.serving.cancel() }
    }

    var backend: any StoreBackend { opening.backend }

    /// Opens the store if the program is configured; otherwise code may still configure it.
    func openIfConfigured() {
      // This reads a file, and programs read `default` often.
      if opened.withLock({ $0 != nil }) { return }
      if UbiquityBootstrap.configuration.isConfigured { begin() }
    }

    /// Opens the store, so that observers hear of changes before anything is read.
    func begin() { _ = opening }

    /// Opened at the first use, while other threads wait.
    private var opening: Opening {
      opened.withLock { opened in
        if let opened { return opened.opening }
        let opening = open()
        let server = ChangeNotifier(backend: opening.backend, poster: poster, coalesce: coalesce)
        // Before any read, so that no change is missed.
        let news = Signal()
        let changes = opening.backend.changes(onOffer: news.raise)
        let account = opening.backend.account
        // Never awaited: Apple's class has no `run()`, and its objects get changes for as long as
        // the process lives.
        let serving = Task.detached { await server.run(changes, news, since: account) }
        opened = Opened(opening: opening, serving: serving)
        return opening
      }
    }

    func add(_ object: NSUbiquitousKeyValueStore) { poster.add(object) }

    var accounts: Result<Accounts, KithError> { opening.accounts }

    /// The account that is signed in. Reading it does not fix the configuration, since programs
    /// read it first.
    var identityToken: NSData? {
      openIfConfigured()
      let account = opened.withLock { $0?.opening.backend.account }
      return account.map { NSData(data: Data($0.bytes)) }
    }

    /// Sets a key's value. As in Apple's class, a refusal is announced, not returned.
    func set(_ object: Any?, forKey key: String) {
      let opening = opening
      let value: PropertyListValue?
      do throws(UnsupportedValue) {
        value = try object.map { object throws(UnsupportedValue) in
          try PropertyListValue(foundationObject: object)
        }
      } catch {
        opening.logger.error(
          "a value that property lists cannot hold was ignored", metadata: ["reason": "\(error)"])
        return
      }
      do throws(KithError) {
        try opening.backend.set(value, forKey: key)
      } catch {
        refused(error, isRemoval: value == nil, key: key, opening)
      }
    }

    private func refused(
      _ error: KithError, isRemoval: Bool, key: String, _ opening: Opening
    ) {
      let logger = opening.logger
      switch error.code {
      case .invalidKey:
        // There is nothing to remove.
        if isRemoval { return }
        if opening.trapsOnInvalidKeys { fatalError(error.message) }
        logger.error("a write was refused", metadata: ["reason": "\(error.message)"])
        poster.refuse(key)
      case .valueTooLarge, .quotaExceeded:
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
      let opening = opening
      do throws(KithError) {
        try opening.backend.flush()
      } catch {
        log(error, opening.logger)
        return false
      }
      failure.withLock { $0 = nil }
      return opening.isConfigured
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
