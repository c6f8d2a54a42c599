package import KithCore
internal import KithCrypto
internal import KithNetwork
internal import KithStorage
internal import Synchronization

/// One device of an account in this process: its directory, its stores, its peers.
///
/// ```swift
/// let node = try await Node.open(.init(directory: directory))
/// let store = try node.store("com.example.App")
/// try await node.run()
/// ```
/// A node that does not run still writes durably, and publishes these writes once it runs and meets
/// a peer.
package final class Node: Sendable {
  /// For the device of one directory.
  package typealias Configuration = Accounts.Configuration

  package let configuration: Configuration
  package let account: AccountID
  package let device: DeviceID

  let engine: Engine
  let opened: OpenDevice
  let staticPeers: [PeerAddress]
  let listening = Mutex<[PeerAddress]>([])
  let transport = Mutex<Transport?>(nil)
  let discovery = Mutex<Discovery?>(nil)
  let yielding = Mutex(Yielding.refused)
  let carriers = Mutex<CarrierRunner?>(nil)
  let carrierList: CarrierList

  init(
    configuration: Configuration, engine: Engine, opened: OpenDevice, staticPeers: [PeerAddress]
  ) {
    self.configuration = configuration
    self.engine = engine
    self.opened = opened
    self.staticPeers = staticPeers
    account = engine.account
    device = engine.keys.id
    carrierList = CarrierList(opened.storage)
  }

  /// Opens the device of a directory, and locks the directory until ``close()``.
  ///
  /// - Throws: ``KithError`` with `missing`, `inUse`, `passphrase`,
  ///   `unsafePermissions`, `damaged`, `newerSchema`, `notAMember`, `network` for a malformed peer
  ///   or too many, or another storage code.
  package static func open(_ configuration: Configuration) async throws(KithError) -> Node {
    try await BlockingThread.run { () throws(KithError) in try Node(opening: configuration) }
  }

  /// Blocks while the disk works.
  convenience init(opening configuration: Configuration) throws(KithError) {
    let peers = try Self.peerAddresses(configuration.peers)
    let opened = try Storage.open(
      configuration.directory, configuration.passphrase, isForReading: configuration.isForReading)
    do throws(KithError) {
      let engine = try Self.engine(of: opened, configuration)
      ExitFlush.register(engine)
      self.init(configuration: configuration, engine: engine, opened: opened, staticPeers: peers)
      if let rebuilt = opened.rebuilt { engine.log(LogLine(rebuilt)) }
      try loadCarriers()
    } catch {
      try? opened.close()
      throw error
    }
  }

  /// A damaged list stops no node; a disk that cannot be read does, or the next change of the list
  /// would lose the rest of it.
  private func loadCarriers() throws(KithError) {
    do throws(StorageError) {
      try carrierList.load()
    } catch {
      guard error.code == .damaged else { throw KithError(error) }
      engine.log(LogLine(.carriersUnread, ["reason": "\(error)"]))
    }
  }

  private static func engine(
    of opened: OpenDevice, _ configuration: Configuration
  ) throws(KithError) -> Engine {
    let account = try Storage.account(of: opened)
    var entropy = SystemRandom()
    let engine = try Engine(
      account: account, keys: opened.keys, process: ProcessID(entropy.draw()),
      storage: configuration.readsMembershipOnly
        ? MembershipStorage(opened.storage) : opened.storage,
      logger: configuration.logger)
    if let keepsHistory = configuration.keepsHistory, !configuration.readsMembershipOnly {
      engine.input(.keepHistory(keepsHistory))
    }
    return engine
  }

  /// A store of the account, created if it is new. The policy must be the same on all devices.
  ///
  /// - Throws: ``KithError`` with `invalidStoreIdentifier`, `invalidPolicy`, `closed` or a storage
  ///   code.
  package func store(
    _ identifier: String, policy: Policy = .standard
  ) throws(KithError) -> KeyValueStore {
    let name = try Self.checked(identifier, policy)
    return KeyValueStore(service: engine, view: try engine.open(name, policy: policy))
  }

  package static func checked(
    _ identifier: String, _ policy: Policy
  ) throws(KithError) -> StoreIdentifier {
    guard let name = StoreIdentifier(identifier) else {
      throw KithError(
        .invalidStoreIdentifier,
        "A store identifier has 1 to \(StoreIdentifier.maximumBytes) bytes of UTF-8 and no control "
          + "characters.")
    }
    guard policy.isWithinBounds else {
      throw KithError(
        .invalidPolicy, "The limits are above Policy.maximum, or negative. Lower them.")
    }
    return name
  }

  /// Makes everything durable, ends all sequences and unlocks the directory.
  ///
  /// - Throws: ``KithError`` with `alreadyRunning` while the node runs. With a storage code if
  ///   something is not durable; the node is closed all the same.
  package func close() throws(KithError) {
    guard !engine.state.withLock({ $0.isRunning }) else {
      throw KithError(.alreadyRunning, "The node runs. Cancel run() first.")
    }
    defer { try? opened.close() }
    try engine.close()
  }
}
