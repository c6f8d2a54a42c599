internal import Glibc
internal import KithCore
internal import KithStorage

/// What stands behind the stores of a place: its device, open in this process, or the node of the
/// process that has it open.
struct Seat {
  /// Who has the device open.
  enum Kind {
    /// This process.
    case own(Node)
    /// Another one, whose node serves the directory's control socket.
    case attached(Attachment)
  }

  /// How long another process may take from opening a directory to serving its socket.
  private static let longestStart = Duration.seconds(10)
  /// How long it waits between two looks, in microseconds.
  private static let lookMicroseconds: UInt32 = 20_000

  let place: AccountsDirectory.Place
  let kind: Kind
  /// Whose the stores are; nil: nobody's.
  let account: AccountID?

  /// Takes a place: opens its device, or finds the node that has it open.
  ///
  /// - Throws: `KithError` as `Node.open` does.
  init(
    at place: AccountsDirectory.Place, in accounts: AccountsDirectory,
    _ configuration: Accounts.Configuration
  ) throws(KithError) {
    self.place = place
    let directory = accounts.directory(of: place)
    let begun = ContinuousClock.now
    while true {
      do throws(KithError) {
        if place == .signedOut { try Self.makeLocalDevice(directory) }
        let node = try Node(
          opening: Self.nodeConfiguration(directory, isLocal: place == .signedOut, configuration))
        kind = .own(node)
        account = place == .signedOut ? nil : node.account
        return
      } catch {
        // Another program may be making the local device: it has begun, and is not there yet.
        let isBeingMade = error.code == .missing && place == .signedOut
        guard error.code == .inUse || isBeingMade else { throw error }
        let attachment = Attachment(directory: directory)
        if !isBeingMade, let theirs = attachment.account {
          guard !configuration.insistsOnItsOwn else { throw error }
          kind = .attached(attachment)
          account = place == .signedOut ? nil : theirs
          return
        }
        guard ContinuousClock.now - begun < Self.longestStart else { throw error }
      }
      usleep(Self.lookMicroseconds)
    }
  }

  private static func nodeConfiguration(
    _ directory: String, isLocal: Bool, _ configuration: Accounts.Configuration
  ) -> Node.Configuration {
    var node = Node.Configuration(directory: directory)
    // The local stores have no peers, and no secrets but those that seal them.
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

  /// A store of the place, for a view of its own.
  func open(
    _ store: StoreIdentifier, _ policy: Policy, onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> (any StoreBacking, StoreView) {
    switch kind {
    case .own(let node): return (node.engine, try node.engine.open(store, policy: policy))
    case .attached(let attachment):
      let attached = try AttachedStore.attach(
        directory: attachment.directory, store: store, policy: policy, onEnd: { _ in onEnd() })
      return (attached, attached.view)
    }
  }

  /// Shows a store of the place in a view that showed another one's, or this one's through another
  /// process, and writes again what that one has not answered. Whoever waits for those writes is told
  /// what came of them, also where this throws.
  func open(
    _ view: StoreView, _ policy: Policy, reason: Change.Reason, superseded: Set<Key>,
    pending: [PendingWrite], onEnd: @escaping @Sendable () -> Void
  ) throws(KithError) -> any StoreBacking {
    var outcomes: [Result<Void, KithError>] = []
    do throws(KithError) {
      switch kind {
      case .own(let node):
        let engine = node.engine
        var lost = superseded
        // Written before the view is the engine's, so that nothing is seen to go and come back.
        outcomes = try Self.write(pending, to: engine, view.identifier, policy, losing: &lost)
        try engine.open(view, policy: policy, reason: reason, superseded: lost)
        for (write, outcome) in zip(pending, outcomes) { write.settle(outcome) }
        return engine
      case .attached(let attachment):
        return try AttachedStore.attach(
          directory: attachment.directory, store: view.identifier, policy: policy, view: view,
          reason: reason, superseded: superseded, pending: pending, onEnd: { _ in onEnd() })
      }
    } catch {
      for write in pending { write.settle(.failure(error)) }
      throw error
    }
  }

  private static func write(
    _ pending: [PendingWrite], to engine: Engine, _ store: StoreIdentifier, _ policy: Policy,
    losing lost: inout Set<Key>
  ) throws(KithError) -> [Result<Void, KithError>] {
    guard !pending.isEmpty else { return [] }
    _ = try engine.open(store, policy: policy)
    var outcomes: [Result<Void, KithError>] = []
    for write in pending {
      do throws(KithError) {
        try engine.write(store, write.operations)
        outcomes.append(.success(()))
      } catch {
        lost.formUnion(write.operations.map { Key($0.key) })
        outcomes.append(.failure(error))
      }
    }
    // The node does not run yet, so each write was durable when it returned.
    return outcomes
  }

  /// Shows nothing more in the stores' views.
  func release(_ stores: [KeyValueStore]) {
    guard case .own(let node) = kind else { return }
    for store in stores { node.engine.release(store.view) }
  }

  /// Makes durable what was written, and leaves the place.
  func close(_ stores: [KeyValueStore]) throws(KithError) {
    switch kind {
    case .own(let node): try node.close()
    case .attached:
      var pending = Attachment.leave(stores)
      Attachment.settle(&pending, .closedNode)
    }
  }
}
