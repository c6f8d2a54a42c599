import ArgumentParser
import FoundationEssentials
import Glibc
package import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// Opens accounts without listening. A nil `passphrase` comes from its source, or the person.
  func accounts(passphrase: PassphraseQuestion? = nil) -> Accounts.Configuration {
    var configuration = Accounts.Configuration(directory: directoryURL.path)
    configuration.hosts = []
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    return configuration
  }

  var isSignedOut: Bool {
    get throws { try Accounts.isSignedOut(in: directoryURL.path) }
  }

  /// Throws if the user is signed out.
  func accountDirectory() throws -> String {
    guard try !isSignedOut else { throw CommandFailure.signedOut(directoryURL.path) }
    return try Accounts.deviceDirectory(in: directoryURL.path)
  }

  static let signingIn = "run kith account create, kith join or kith account sign-in"

  /// If signed out, a new device gets its own directory.
  func checkNewDevice() throws {
    let path = directoryURL.path
    if let refusal = Files.foreign(path) { throw KithError(refusal) }
    guard try !Self.findsDevice(path) || isSignedOut else {
      throw CommandFailure(
        .directory,
        "\(path): the directory holds a device already (see: kith status); for another one give "
          + "another --directory")
    }
  }

  /// Throws if a part of a device is there.
  private static func findsDevice(_ path: String) throws(KithError) -> Bool {
    do {
      return try DeviceDirectory.findsDevice(path)
    } catch {
      throw KithError(error)
    }
  }

  /// Adopts writes made while signed out. Returns the error, because the command must first report
  /// the new device.
  func adoption(passphrase: Passphrase?) async -> Result<Void, KithError> {
    await Result(awaiting: { () async throws(KithError) in
      try await Accounts.adoptLocalWrites(accounts(passphrase: passphrase?.answer))
    })
  }

  /// A node may be starting or stopping.
  static let timeout = Duration.seconds(10)

  /// Calls a body with the directory's node: the running one, over its control socket, or one
  /// opened during the call. When signed out, it is the node of the local stores, which the first
  /// write creates.
  ///
  /// If `reads`, the body keeps nothing, and may read a copy while the disk takes no writes.
  ///
  /// `waiting` is how long another process may have the directory open without serving it, and
  /// `answering` how long one that serves it may take for its first answer; nil: as usual.
  /// `readsMembershipOnly` opens a node without stores, and without memory for them. A nil
  /// `passphrase` comes from its source, or the person. Throws also if a needed node is not
  /// running, and, if `ofAccount`, if the user is signed out.
  func withNode<Result: Sendable>(
    ofAccount: Bool = false, needsNode: Bool = false, readsMembershipOnly: Bool = false,
    reads: Bool = false, writes: Bool = false,
    waiting wait: Duration = CommonOptions.timeout, answering limit: Duration? = nil,
    passphrase: PassphraseQuestion? = nil,
    _ body: (any NodeAccess) async throws -> Result
  ) async throws -> Result {
    let directory =
      try ofAccount ? accountDirectory() : Accounts.deviceDirectory(in: directoryURL.path)
    let isSignedOut = try isSignedOut
    if isSignedOut, !needsNode, try !Self.findsDevice(directory) {
      guard writes else {
        console.talk(
          "\(directoryURL.path): nobody is signed in here, and nothing was written yet.")
        return try await body(UnwrittenStores(directory: directory))
      }
      try Accounts.makeLocalStores(in: directoryURL.path)
    }
    var configuration = Node.Configuration(directory: directory)
    configuration.readsMembershipOnly = readsMembershipOnly
    configuration.isForReading = reads
    // Commands print errors themselves; a log line would disturb a question.
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    let connected: NodeConnector.Connected
    do throws(KithError) {
      connected = try await NodeConnector.connectOrOpen(
        configuration, needsNode: needsNode,
        // A node that follows the sign-out makes the local stores' device.
        mayBeMade: isSignedOut, waiting: wait, answering: limit)
    } catch {
      guard needsNode, error.code == .notRunning else { throw error }
      // It may have a node, which answers only its user.
      if let refusal = Files.foreign(directory) { throw KithError(refusal) }
      throw CommandFailure(
        .unreachable,
        isSignedOut
          ? "\(directoryURL.path): nobody is signed in here, and no program has the local stores open; "
            + "\(Self.signingIn), and then kith run"
          : "\(directory): no node runs here, and this needs one; start it with `kith run`")
    }
    let (result, isFirstWrite) = try await closing(connected.close) {
      // The first of those that an account will take over.
      var isFirstWrite = false
      if writes, isSignedOut {
        isFirstWrite = try await connected.node.status().stores.allSatisfy { $0.usage.keys == 0 }
      }
      return (try await body(connected.node), isFirstWrite)
    }
    if isFirstWrite {
      console.talk(
        "Nobody is signed in at \(directoryURL.path), so this stays on this host. To have it on your "
          + "other devices, \(Self.signingIn).")
    }
    return result
  }
}

/// Closes after a body on every path, which makes all writes durable.
private func closing<Result>(
  _ close: () throws(KithError) -> Void, after body: () async throws -> Result
) async throws -> Result {
  let result: Result
  do {
    result = try await body()
  } catch {
    try? close()
    throw error
  }
  try close()
  return result
}

extension Accounts {
  func use<Result>(_ body: (Accounts) async throws -> Result) async throws -> Result {
    try await closing(self.close) { try await body(self) }
  }
}

extension CommonOptions {
  /// Keys of a lacking store may be missing or older.
  func warn(ifLacking isLacking: Bool, _ store: String) {
    guard isLacking else { return }
    console.warn(
      "a part of the store \"\(Columns.printable(store))\" was damaged on this disk and is missing: "
        + "keys may be missing or show older values; see: kith status")
  }
}

extension NodeAccess {
  /// Throws if this device was revoked, before a command makes something, or waits, in vain.
  func checkMember() async throws(KithError) {
    guard try await !status().isRevoked else { throw .revokedDevice }
  }

  /// Writes as ``write(_:in:expecting:)`` does. If a key shows a value of another type than expected,
  /// the error says so: both may look alike.
  func write(
    _ writes: [(key: String, value: PropertyListValue?)], in store: String,
    ifShown expected: [(key: String, value: PropertyListValue?)]
  ) async throws {
    do {
      try await write(writes, in: store, expecting: expected)
    } catch {
      guard error.code == .unexpectedValue else { throw error }
      for (key, old) in expected {
        guard let old, let shown = try await value(forKey: key, in: store),
          shown.typeName != old.typeName
        else { continue }
        throw CommandFailure(
          .unexpected,
          "\"\(Columns.printable(key, limit: 80))\": the key shows a value of another type: "
            + "\(shown.typeName), not \(old.typeName); nothing was written. See --type")
      }
      throw error
    }
  }
}

extension [KeyValueStore.Key: PropertyListValue] {
  /// In the order of the keys' UTF-8 bytes.
  package var entries: [(key: String, value: PropertyListValue)] {
    sorted { $0.key < $1.key }.map { ($0.key.text, $0.value) }
  }
}

extension [String] {
  /// Each key once, where it comes first.
  var uniqueKeys: Self {
    var known: Set<KeyValueStore.Key> = []
    return filter { known.insert(KeyValueStore.Key($0)).inserted }
  }
}

extension StoreOptions {
  /// The default store exists before its first write, because its name cannot be mistyped.
  var isDefault: Bool {
    get throws(CommandFailure) {
      guard store != nil else { return true }
      let usual = try? Self.identifier(
        option: nil, environment: ProcessInfo.processInfo.environment)
      return try identifier == usual
    }
  }

  /// Returns the store that a command reads; throws if the account has none of that name.
  func existing(at node: any NodeAccess) async throws -> String {
    guard try await isThere(at: node) else { throw try missing("see: kith status") }
    return try identifier.rawValue
  }

  func isThere(at node: any NodeAccess) async throws -> Bool {
    if try isDefault { return true }
    let name = try identifier
    return try await node.status().stores.contains { $0.identifier == name }
  }

  fileprivate func missing(_ advice: String) throws(CommandFailure) -> CommandFailure {
    CommandFailure(
      .notFound,
      "there is no store \"\(Columns.printable(try identifier.rawValue))\" here; \(advice)")
  }
}

struct WrittenStoreOptions: ParsableArguments {

  @Flag(
    help: ArgumentHelp(
      "Create the store if it is missing. Default: ask. Not needed without --store."))
  var create = false

  @OptionGroup var store: StoreOptions

  /// Returns the store that a command writes to. A new name needs a confirmation or `--create`: a
  /// mistyped store would stay on all devices for ever.
  func writable(at node: any NodeAccess, _ console: Console) async throws -> String {
    let name = try store.identifier.rawValue
    guard !create, try await !store.isThere(at: node) else { return name }
    guard Terminal.hasInput else {
      throw try store.missing("see: kith status; to create it, pass --create")
    }
    console.warn("there is no store \"\(Columns.printable(name))\" here; see: kith status")
    let isWanted = Confirmation.isGiven(
      "It would be created on all devices, and its name cannot be removed. Create it?", console)
    guard isWanted else { throw CommandFailure(.refused, "nothing was written") }
    return name
  }
}
