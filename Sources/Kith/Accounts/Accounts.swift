internal import FoundationEssentials
public import KithCore
internal import KithStorage
public import Logging
public import ServiceLifecycle
internal import Synchronization

/// The stores of the account that is signed in on this host: one account, or none.
///
/// ```swift
/// let accounts = try Accounts()
/// let store = try accounts.store("com.example.App")  // the same object after each sign-in
/// try await accounts.run()                            // or hand it to a ServiceGroup
/// ```
/// Without an account the stores are local. On signing in, the account adopts only the local keys
/// that it lacks, so a program's early writes never erase good data. Signing out, or in to another
/// account, shows the other stores, with `ChangeReason.accountChange`. Each account's data stays in
/// its own directory.
///
/// Several programs may use one directory at once: the first opens it, the others attach to its
/// node, and one of them takes over when it ends.
public final class Accounts: Service, Sendable {
  /// How accounts are opened.
  public struct Configuration: Sendable {
    /// The directory of the accounts, which `kith account create` or `kith join` may have made. A path
    /// that begins with `~` is refused.
    public var directory: String
    /// The hosts to listen on while signed in; `::` includes IPv4; empty: does not listen.
    public var hosts = ["::"]
    /// The port to listen on, or any other if it is taken; 0: any.
    public var port: UInt16 = 4114
    /// Addresses that are dialled for ever, such as `192.0.2.1:4114` or `name.local:4114`; at most
    /// 256.
    public var peers: [String] = []
    /// Whether to find the account's devices on the LAN, and be found by them.
    ///
    /// Works on this host only if all ``hosts`` are loopback addresses.
    public var discoversPeers = true
    /// Whether the device keeps the values that its keys showed before, as
    /// ``KeyValueStore/history(of:limit:)-(String?,_)`` returns them; false deletes them.
    ///
    /// The device remembers it. Nil: as it was set last; at first true. It has no effect if another
    /// program has the directory open.
    public var keepsHistory: Bool?
    /// Opens the storage of carriers; nil: the program uses none.
    ///
    /// `KithCarriers` has an opener for folders, WebDAV and S3. The carriers themselves are those
    /// that `kith carrier add` gave to the device or the account.
    public var carriers: CarrierOpener?
    /// Asks for the passphrase of a device's secrets, if they have one.
    ///
    /// New devices get it as their passphrase. The local stores never have one.
    public var passphrase: PassphraseQuestion?
    /// The log, with the names of devices, never with keys or values (`Docs/Logs.md`).
    public var logger = Logger(label: "kith")

    package var servesControlSocket = true
    /// Whether a node reads only membership, to change it while none runs. Such a node has no stores,
    /// saves their memory, and must not run.
    package var readsMembershipOnly = false
    /// Whether a node may open a copy in memory if the disk takes no writes. Such a node loses what it
    /// is told to keep, and must not run.
    package var isForReading = false
    /// Whether a program that has the device open must yield it, and a taken port is an error. Set
    /// if a person chose both. Two that insist do not share a device.
    package var insistsOnItsOwn = false

    /// Makes a configuration with the defaults.
    ///
    /// ```swift
    /// var configuration = Accounts.Configuration(directory: directory)
    /// configuration.peers = ["nas.local:4114"]
    /// let accounts = try Accounts(configuration)
    /// ```
    ///
    /// - Parameter directory: The directory; nil: that of `kith`, which is `KITH_DIRECTORY`,
    ///   `$XDG_DATA_HOME/kith` or `~/.local/share/kith`.
    public init(directory: String? = nil) {
      self.directory =
        directory ?? DefaultDirectory.path(environment: ProcessInfo.processInfo.environment)
    }
  }

  struct OpenStore {
    let store: KeyValueStore
    let policy: Policy
  }

  struct State {
    var active: ActiveDevice
    var stores: [StoreIdentifier: OpenStore] = [:]
    var isRunning = false
    var isClosed = false
    /// Whether the stores do not show the active device's values yet.
    var isSwitching = false
    /// Why the account may not have adopted all local writes; nil: it has.
    var pendingAdoption: PendingAdoption?
  }

  /// Local writes, made while nobody was signed in, that the account has not adopted yet.
  struct PendingAdoption {
    var error: KithError
    /// Whether the account can never take what is left, and has all else.
    var isFinal: Bool
    /// Whether it only waits for another process that has the local stores open, or starts.
    var isShort: Bool
    /// When to retry; nil: not in this process.
    var retryAt: ContinuousClock.Instant?
  }

  /// The configuration with which the accounts were opened.
  public let configuration: Configuration
  let directory: AccountsDirectory
  /// Locked while another device becomes active, an account adopts, or a store is opened: it
  /// may be held for long. Taken before ``state``.
  let switchLock = Mutex(())
  /// Never locked during a wait. Only a holder of ``switchLock`` changes the active device and the stores.
  let state: Mutex<State>
  /// Raised after signing in or out, and when the service of the stores has ended.
  let switched = Signal()

  /// Opens the stores of the signed-in account, or attaches to the program that has them open.
  ///
  /// Blocks for the disk, and up to 10 seconds while another process that has the directory open
  /// starts, ends or does not answer. If its node must take writes made while signed out, up to 30
  /// seconds more.
  ///
  /// - Throws: ``KithError`` with `inUse` if another process has the directory open and runs no
  ///   node, `timedOut` if its node does not answer, `missing` if the directory's path begins with `~`,
  ///   `passphrase`, `unsafePermissions`, `damaged`, `newerSchema`, or another storage code.
  public init(_ configuration: Configuration = Configuration()) throws(KithError) {
    if let refusal = DefaultDirectory.refusal(of: configuration.directory) {
      throw KithError(.missing, "The directory \(refusal)")
    }
    self.configuration = configuration
    directory = AccountsDirectory(path: configuration.directory)
    try directory.prepare()
    let active = try ActiveDevice(
      at: directory.location(), in: directory, configuration, onEnd: switched.raise)
    state = Mutex(State(active: active))
    adopt(by: active)
  }

  /// Returns a store of the signed-in account, created if it is new.
  ///
  /// Each call with one identifier returns the same object, which stays through signing in and out.
  /// Only the first call blocks. If another program's node has the directory open, it waits until
  /// that node answers, at most 10 seconds; if that node ends, this program takes its place, as
  /// ``init(_:)`` does. While the stores change to another account or program, it first waits for the
  /// end of that: a minute or two if another process hangs.
  ///
  /// - Parameters:
  ///   - identifier: The store's identifier, such as `com.example.Bookmarks`.
  ///   - policy: Its limits, which must be the same on all devices.
  /// - Returns: The store.
  /// - Throws: ``KithError`` with `invalidStoreIdentifier`, `invalidPolicy`, `closed`, a storage
  ///   code, `timedOut` if that node does not answer, or an error of ``init(_:)`` if it has ended.
  public func store(
    _ identifier: String, policy: Policy = .standard
  ) throws(KithError) -> KeyValueStore {
    let name = try Node.checked(identifier, policy)
    guard !name.isReserved else {
      throw KithError(
        .invalidStoreIdentifier, "Identifiers that begin with kith. are the account's own.")
    }
    while true {
      let active = state.withLock { $0.active }
      do throws(KithError) {
        return try openedStore(name, policy)
      } catch {
        // The program that had the directory open is ending: this one takes its place, or attaches
        // to the one that does, unless another thread did so meanwhile.
        guard error.code == .closed, case .attached(let node) = active.kind, node.hasEnded else {
          throw error
        }
        try follow(isServing: false)
      }
    }
  }

  private func openedStore(
    _ name: StoreIdentifier, _ policy: Policy
  ) throws(KithError) -> KeyValueStore {
    if let open = try openStore(name, policy) { return open }
    return try switchLock.withLock { _ throws(KithError) in
      if let open = try openStore(name, policy) { return open }
      let service = state.withLock { $0.active.service }
      let store = KeyValueStore(
        service: service, view: try service.open(name, policy: policy)
      ) { [weak self] in
        self?.serviceEnded() ?? false
      }
      state.withLock { $0.stores[name] = OpenStore(store: store, policy: policy) }
      return store
    }
  }

  private func openStore(
    _ name: StoreIdentifier, _ policy: Policy
  ) throws(KithError) -> KeyValueStore? {
    try state.withLock { state throws(KithError) in
      if state.isClosed { throw .closedNode }
      guard let open = state.stores[name] else { return nil }
      guard open.policy == policy else {
        throw KithError(
          .invalidPolicy, "The store \(name) is open with other limits. Use the same everywhere.")
      }
      return open.store
    }
  }

  /// The account that is signed in, also offline; nil: none.
  public var signedIn: AccountID? { state.withLock { $0.active.account } }

  /// The account that is signed in, now and after each change, once the stores show it. It ends
  /// when the accounts are closed or the task is cancelled.
  package var signedInUpdates: some AsyncSequence<AccountID?, Never> & Sendable {
    Updates<AccountID?> { last in
      for await () in self.switched {
        let now = self.state.withLock { $0.isSwitching ? last : .some($0.active.account) }
        if let now, last != .some(now) { return .some(now) }
      }
      return nil
    }
  }

  /// The node of the stores, if this process has it open; closed when somebody signs in or out.
  package var node: Node? {
    if case .own(let node) = state.withLock({ $0.active.kind }) { node } else { nil }
  }

  /// Makes everything durable, ends all sequences and unlocks the directory.
  ///
  /// Call it after ``run()`` has ended. If another program has the directory open, it waits up to
  /// 30 seconds for an answer. If a sign-in or sign-out goes on, it first waits for its end.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` while it runs. With a storage code, something is
  ///   not durable, but the accounts are closed.
  public func close() throws(KithError) {
    defer { switched.finish() }
    try switchLock.withLock { _ throws(KithError) in
      let last = try state.withLock { state throws(KithError) -> State? in
        guard !state.isRunning else {
          throw KithError(.alreadyRunning, "The accounts are served. Cancel run() first.")
        }
        if state.isClosed { return nil }
        state.isClosed = true
        return state
      }
      guard let last else { return }
      defer { for open in last.stores.values { open.store.view.finish() } }
      try last.active.close()
    }
  }
}
