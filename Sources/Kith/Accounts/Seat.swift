internal import KithCore
internal import KithStorage

/// The device of a place: open in this process, or reached through the node of the process that has
/// it open. This type decides which.
struct Seat {
  /// The process that has the device open.
  enum Kind {
    /// This process.
    case own(Node)
    /// Another one, whose node serves the directory's control socket.
    case attached(RemoteNode)
  }

  /// How long another process may take from opening a directory to serving its socket.
  private static let longestStart = Duration.seconds(10)

  let place: AccountsDirectory.Place
  let kind: Kind
  /// The account of the stores; nil: nobody's.
  let account: AccountID?

  /// Takes a place: attaches to the node that has its device open, or opens it. It blocks while another
  /// process that has it open starts or ends.
  ///
  /// - Parameters:
  ///   - place: The place.
  ///   - accounts: The directory of accounts.
  ///   - configuration: How to open it.
  ///   - onEnd: Called when a node that this attached to has ended.
  /// - Throws: `KithError` as `Node.open` does.
  init(
    at place: AccountsDirectory.Place, in accounts: AccountsDirectory,
    _ configuration: Accounts.Configuration, onEnd: @escaping @Sendable () -> Void = {}
  ) throws(KithError) {
    self.place = place
    let isLocal = place == .signedOut
    let directory = accounts.directory(of: place)
    if isLocal { try Self.makeLocalDevice(directory) }
    kind = try NodeDoor.enter(
      Self.nodeConfiguration(directory, isLocal: isLocal, configuration),
      insists: configuration.insistsOnItsOwn, mayBeMade: isLocal, waiting: Self.longestStart,
      onEnd: onEnd)
    account =
      switch kind {
      case _ where isLocal: nil
      case .own(let node): node.account
      case .attached(let node): node.account
      }
  }

  /// The stores of the place.
  var service: any StoreService {
    switch kind {
    case .own(let node): node.engine
    case .attached(let node): node
    }
  }

  private static func nodeConfiguration(
    _ directory: String, isLocal: Bool, _ configuration: Accounts.Configuration
  ) -> Node.Configuration {
    var node = Node.Configuration(directory: directory)
    // The local stores have no peers, and only the secrets that seal them.
    node.hosts = isLocal ? [] : configuration.hosts
    node.port = configuration.port
    node.peers = isLocal ? [] : configuration.peers
    node.discoversPeers = !isLocal && configuration.discoversPeers
    node.passphrase = isLocal ? nil : configuration.passphrase
    node.logger = configuration.logger
    return node
  }

  /// The local stores are those of an account that nobody else can ever join: its recovery key is
  /// forgotten, and its device listens nowhere.
  static func makeLocalDevice(_ directory: String) throws(KithError) {
    guard !DeviceDirectory.holdsDevice(directory) else { return }
    do throws(KithError) {
      _ = try Node.createAccount(directory: directory, name: "local")
    } catch {
      // Another program may be making it at the same moment.
      guard error.code == .alreadyExists || error.code == .inUse else { throw error }
    }
  }

  /// Makes durable what was written, and leaves the place.
  func close() throws(KithError) {
    switch kind {
    case .own(let node): try node.close()
    case .attached(let node):
      defer { node.close() }
      if !node.hasEnded { try node.flush() }
    }
  }
}
