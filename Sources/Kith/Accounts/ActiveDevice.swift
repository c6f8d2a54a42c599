internal import KithCore
internal import KithStorage

/// The device of a location, hosted by this process or another.
struct ActiveDevice {
  enum Kind {
    case own(Node)
    /// At another process's node, over the directory's control socket.
    case attached(RemoteNode)
  }

  /// From opening a directory to serving its socket.
  private static let longestStart = Duration.seconds(10)

  let location: AccountsDirectory.Location
  let kind: Kind
  /// The account of the stores; nil: local stores.
  let account: AccountID?

  /// Attaches to the node that has the location's device open, or opens the device. It blocks while
  /// another process starts or ends with it; after a yield, until another process serves it.
  /// `onEnd` is called when the attached node has ended, or the own one is to yield.
  init(
    at location: AccountsDirectory.Location, in accounts: AccountsDirectory,
    _ configuration: Accounts.Configuration, afterYield: Bool = false,
    onEnd: @escaping @Sendable () -> Void = {}
  ) throws(KithError) {
    self.location = location
    let isLocal = location == .signedOut
    let directory = accounts.directory(of: location)
    if isLocal { try Self.makeLocalDevice(directory) }
    if afterYield,
      let next = try NodeConnector.attach(
        afterYield: directory, waiting: Self.longestStart, onEnd: onEnd)
    {
      kind = next
    } else {
      kind = try NodeConnector.connectOrOpen(
        Self.nodeConfiguration(directory, isLocal: isLocal, configuration),
        insists: configuration.insistsOnItsOwn, mayBeMade: isLocal, waiting: Self.longestStart,
        onEnd: onEnd)
    }
    if case .own(let node) = kind, !configuration.insistsOnItsOwn {
      node.yielding.withLock { $0 = .offered(onRequest: onEnd) }
    }
    account =
      switch kind {
      case _ where isLocal: nil
      case .own(let node): node.account
      case .attached(let node): node.account
      }
  }

  /// Whether another process opens the device next.
  var isYielding: Bool {
    switch kind {
    case .own(let node): node.isYielding
    case .attached(let node): node.isYielding
    }
  }

  /// Whether the database must be opened anew, which repairs it.
  var isDamaged: Bool {
    if case .own(let node) = kind { node.engine.damage.version > 0 } else { false }
  }

  var service: any StoreService {
    switch kind {
    case .own(let node): node.engine
    case .attached(let node): node
    }
  }

  private static func nodeConfiguration(
    _ directory: String, isLocal: Bool, _ configuration: Accounts.Configuration
  ) -> Node.Configuration {
    var node = configuration
    node.directory = directory
    guard isLocal else { return node }
    // The local stores have no peers and no passphrase: their secrets only seal them.
    node.hosts = []
    node.peers = []
    node.discoversPeers = false
    node.passphrase = nil
    return node
  }

  /// The local stores belong to an account that nobody can join: its recovery key is dropped, and
  /// its device listens nowhere.
  static func makeLocalDevice(_ directory: String) throws(KithError) {
    guard try !KithError.mapping(DeviceDirectory.findsDevice(directory)) else { return }
    do throws(KithError) {
      _ = try Node.createAccount(directory: directory, name: "local")
    } catch {
      // Another program may be making it at the same time.
      guard error.code == .alreadyExists || error.code == .inUse else { throw error }
    }
  }

  /// Makes all writes durable first.
  func close() throws(KithError) {
    switch kind {
    case .own(let node): try node.close()
    case .attached(let node):
      defer { node.close() }
      if !node.hasEnded { try node.flush() }
    }
  }
}
