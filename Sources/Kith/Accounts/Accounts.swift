public import KithCore
internal import KithStorage
public import Logging
public import ServiceLifecycle
internal import Synchronization

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The stores of the account that is signed in on this host: one account, or none.
///
/// ```swift
/// let accounts = try Accounts()
/// let store = try accounts.store("com.example.App")  // stays the same object, whoever signs in
/// try await accounts.run()                            // or hand it to a ServiceGroup
/// ```
/// Without an account the stores work locally. Once somebody signs in, the account gets the keys
/// written so far, unless it has those keys already: a program's early writes never erase good
/// data. Signing out, or in to another account, shows the other stores in the place of these, with
/// `ChangeReason.accountChange`; each account's data stays in its own directory.
///
/// Several programs may use one directory at once: the first has it open, the others attach to its
/// node, and one of them takes over when it ends.
public final class Accounts: Service, Sendable {
  /// How accounts are opened.
  public struct Configuration: Sendable {
    /// The directory of the accounts: also one that `kith account create` or `kith join` made.
    public var directory: String
    /// The hosts to listen on while signed in; `::` takes IPv4 too. Empty: does not listen.
    public var hosts = ["::"]
    /// The port to listen on; 0: any. If another program has the port, any other is used.
    public var port: UInt16 = 4114
    /// Addresses that are dialled for ever, such as `192.0.2.1:4114` or `name.local:4114`.
    public var peers: [String] = []
    /// Whether to find the account's other devices on the LAN, and be found by them. If all
    /// ``hosts`` are loopback addresses, this works on this host only.
    public var discoversPeers = true
    /// Asks for the passphrase of a device's secrets; not called if they have none. Devices that
    /// are made here get it as their passphrase. The local stores of nobody never have one.
    public var passphrase: PassphraseQuestion?
    /// The log: at most at info, never keys or values.
    public var logger = Logger(label: "kith")

    /// The passphrase for devices that are made here, instead of ``passphrase``; `.some(nil)`:
    /// none.
    package var newDevicePassphrase: Passphrase??
    /// Whether to fail if another process has the device open, or another program the port. This is
    /// right if a person chose both.
    package var insistsOnItsOwn = false

    /// The defaults.
    ///
    /// ```swift
    /// var configuration = Accounts.Configuration(directory: directory)
    /// configuration.peers = ["nas.local:4114"]
    /// let accounts = try Accounts(configuration)
    /// ```
    ///
    /// - Parameter directory: The directory; nil: the one that `kith` uses, which is
    ///   `KITH_DIRECTORY`, `$XDG_DATA_HOME/kith` or `~/.local/share/kith`.
    public init(directory: String? = nil) {
      self.directory =
        directory ?? UsualDirectory.path(environment: ProcessInfo.processInfo.environment)
    }
  }

  /// A store that a program has.
  struct OpenStore {
    let store: KeyValueStore
    let policy: Policy
  }

  struct State {
    var seat: Seat
    var stores: [StoreIdentifier: OpenStore] = [:]
    var isRunning = false
    var isClosed = false
    /// Why local stores may hold what the account has not taken yet; nil: they do not.
    var owed: Debt?
  }

  /// Writes made while nobody was signed in that are not the account's yet.
  struct Debt {
    /// Why it is not.
    var error: KithError
    /// When it is tried again; nil: not by this process.
    var retryAt: ContinuousClock.Instant?
  }

  /// How they were opened.
  public let configuration: Configuration
  let directory: AccountsDirectory
  /// Held while one seat is left for another: who asks for a store then waits.
  let state: Mutex<State>
  let identity: Mutex<AccountID?>
  /// Raised when somebody has signed in or out, and when the service of the stores has ended.
  let moved = Signal()

  /// Opens the stores of the signed-in account, or attaches to the program that has them open. It
  /// blocks for as long as the disk takes, and up to 10 seconds while another process has the
  /// directory open and is starting or ending.
  ///
  /// - Throws: ``KithError`` with `inUse` if another process has the directory open and runs no
  ///   node, `passphrase`, `unsafePermissions`, `damaged`, `newerSchema`, or another storage code.
  public init(_ configuration: Configuration = Configuration()) throws(KithError) {
    self.configuration = configuration
    directory = AccountsDirectory(path: configuration.directory)
    try directory.prepare()
    let seat = try Seat(at: directory.place(), in: directory, configuration, onEnd: moved.raise)
    state = Mutex(State(seat: seat))
    identity = Mutex(seat.account)
    _ = state.withLock { adopt(&$0) }
  }

  /// A store of the signed-in account, which is begun if it is new. Opening it again gives the same
  /// object, which stays through signing in and out.
  ///
  /// - Parameters:
  ///   - identifier: The store's identifier, such as `com.example.Bookmarks`.
  ///   - policy: Its limits, which must be the same on all devices.
  /// - Returns: The store.
  /// - Throws: ``KithError`` with `invalidStoreIdentifier`, `invalidPolicy`, `closed` or a storage
  ///   code.
  public func store(
    _ identifier: String, policy: Policy = .standard
  ) throws(KithError) -> KeyValueStore {
    let name = try Node.checked(identifier, policy)
    return try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      if let known = state.stores[name] {
        guard known.policy == policy else {
          throw KithError(
            .invalidPolicy, "The store \(name) is open with other limits. Use the same everywhere.")
        }
        return known.store
      }
      let service = state.seat.service
      let store = KeyValueStore(
        service: service, view: try service.open(name, policy: policy)
      ) { [weak self] in
        self?.succeed() ?? false
      }
      state.stores[name] = OpenStore(store: store, policy: policy)
      return store
    }
  }

  /// The account that is signed in; nil: none is. Also offline.
  public var signedIn: AccountID? { identity.withLock { $0 } }

  /// The account that is signed in, now and each time it changes. The sequence ends when the
  /// accounts are closed or the task is cancelled.
  package var signedInUpdates: SignedInUpdates { SignedInUpdates(accounts: self) }

  /// The node whose stores these are, if this process has it open. It is closed when somebody signs in
  /// or out.
  package var node: Node? {
    if case .own(let node) = state.withLock({ $0.seat.kind }) { node } else { nil }
  }

  /// Makes everything durable, ends all sequences and unlocks the directory. Call it once ``run()``
  /// has ended. If another program has the directory open, it waits up to 30 seconds for its answer.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` while it runs, or a storage code if something
  ///   could not be made durable; it is closed then all the same.
  public func close() throws(KithError) {
    defer { moved.finish() }
    try state.withLock { state throws(KithError) in
      guard !state.isRunning else {
        throw KithError(.alreadyRunning, "The accounts are served. Cancel run() first.")
      }
      guard !state.isClosed else { return }
      state.isClosed = true
      defer { for open in state.stores.values { open.store.view.finish() } }
      try state.seat.close()
    }
  }
}

/// The account that is signed in, each time it changes; see ``Accounts/signedInUpdates``.
package struct SignedInUpdates: AsyncSequence, Sendable {
  /// Takes the accounts.
  package struct AsyncIterator: AsyncIteratorProtocol {
    let accounts: Accounts
    private var last: AccountID??

    init(_ accounts: Accounts) {
      self.accounts = accounts
    }

    /// The account that is signed in, or nil in it, once that has changed; nil at the end.
    package mutating func next() async -> AccountID?? {
      let signal = accounts.moved
      while !Task.isCancelled {
        let version = signal.version
        let now = accounts.signedIn
        if last != .some(now), !signal.isFinished {
          last = .some(now)
          return .some(now)
        }
        if signal.isFinished { return nil }
        await signal.wait(after: version)
      }
      return nil
    }
  }

  let accounts: Accounts

  /// An iterator, which begins with who is signed in now.
  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(accounts) }
}
