import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// Returns the configuration for opening the directory's accounts without listening. `passphrase`
  /// returns their passphrase; nil: from its source, or the person.
  func accounts(passphrase: PassphraseQuestion? = nil) -> Accounts.Configuration {
    var configuration = Accounts.Configuration(directory: directoryURL.path)
    configuration.hosts = []
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    return configuration
  }

  /// Whether the user is signed out in the directory, so that writes stay on this host.
  var isSignedOut: Bool {
    get throws { try Accounts.isSignedOut(in: directoryURL.path) }
  }

  /// Returns the directory of the device of the account that is signed in.
  ///
  /// - Throws: ``CommandFailure`` if the user is signed out.
  func accountDirectory() throws -> String {
    guard try !isSignedOut else {
      throw CommandFailure(
        .directory, "\(directoryURL.path): nobody is signed in here; \(Self.signingIn)")
    }
    return try Accounts.deviceDirectory(in: directoryURL.path)
  }

  /// The advice for a signed-out user.
  static let signingIn = "run kith account create, kith join or kith account sign-in"

  /// Refuses to create a device in a directory that holds one, unless signed out: then another gets
  /// its own directory.
  func checkNewDevice() throws {
    let path = directoryURL.path
    if let refusal = DeviceDirectory.refusalOfForeign(path) { throw KithError(refusal) }
    guard try !DeviceDirectory.holdsDevice(path) || isSignedOut else {
      throw CommandFailure(
        .directory, "\(path): the directory holds a device already; give another one")
    }
  }

  /// Gives writes made while signed out to the account. Returns the error, because a new device
  /// must be reported first.
  func adoption(passphrase: Passphrase?) async -> Result<Void, any Error> {
    do throws(KithError) {
      try await Accounts.adoptLocalWrites(accounts(passphrase: passphrase?.answer))
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// The time for a directory's node to answer, because it may be starting or stopping.
  private static let patience = Duration.seconds(10)

  /// Calls a body with the directory's node: the running one, over its control socket, or one
  /// opened during the call. When signed out it is the node of the local stores, which the first
  /// write creates.
  ///
  /// - Parameters:
  ///   - needsNode: Whether the node must be running.
  ///   - readsMembershipOnly: Whether an opened node has no stores, and needs no memory for them.
  ///   - writes: Whether the body writes to a store.
  ///   - passphrase: The passphrase; nil: from its source, or the person.
  ///   - body: Called with the node.
  /// - Returns: The result of the body.
  /// - Throws: `KithError`, ``CommandFailure`` if a running node is missing, or the error of the
  ///   body.
  func withNode<Result: Sendable>(
    needsNode: Bool = false, readsMembershipOnly: Bool = false, writes: Bool = false,
    passphrase: PassphraseQuestion? = nil,
    _ body: (any NodeAccess) async throws -> Result
  ) async throws -> Result {
    let directory = try Accounts.deviceDirectory(in: directoryURL.path)
    let isSignedOut = try isSignedOut
    if isSignedOut, !needsNode, !DeviceDirectory.holdsDevice(directory) {
      guard writes else {
        console.talk(
          "\(directoryURL.path): nobody is signed in here, and nothing was written yet.")
        return try await body(UnwrittenStores(directory: directory))
      }
      try Accounts.makeLocalStores(in: directoryURL.path)
    }
    var configuration = Node.Configuration(directory: directory)
    configuration.readsMembershipOnly = readsMembershipOnly
    // Commands print errors themselves; a log line would disturb a question.
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    let entered: NodeDoor.Entered
    do throws(KithError) {
      entered = try await NodeDoor.enter(
        configuration, needsNode: needsNode, waiting: Self.patience)
    } catch {
      guard needsNode, error.code == .notRunning else { throw error }
      throw isSignedOut ? Self.noProgram(in: directoryURL.path) : Self.noNode(in: directory)
    }
    let result: Result
    do {
      result = try await body(entered.node)
    } catch {
      try? entered.close()
      throw error
    }
    try entered.close()
    if writes && isSignedOut {
      console.talk(
        "Nobody is signed in at \(directoryURL.path), so this stays on this host. To have it on your "
          + "other devices, \(Self.signingIn).")
    }
    return result
  }

  private static func noProgram(in directory: String) -> CommandFailure {
    CommandFailure(
      .unreachable,
      "\(directory): nobody is signed in here, and no program has the local stores open; "
        + "\(signingIn), and then kith run")
  }

  private static func noNode(in directory: String) -> CommandFailure {
    CommandFailure(
      .unreachable, "\(directory): no node runs here, and this needs one; start it with `kith run`")
  }
}

/// A value that a command opens, and must close on every path.
protocol Closable {
  /// Makes all writes durable, and releases everything.
  func close() throws(KithError)
}

extension Node: Closable {}
extension Accounts: Closable {}

extension Closable {
  /// Calls the body with the value, and closes it.
  func use<Result>(_ body: (Self) async throws -> Result) async throws -> Result {
    let result: Result
    do {
      result = try await body(self)
    } catch {
      try? close()
      throw error
    }
    try close()
    return result
  }
}

extension CommonOptions {
  /// Warns if part of a store was damaged here and is missing: a key may be missing, or older.
  func warnIfLacking(_ store: String, at node: any NodeAccess) async throws {
    guard try await node.isLacking(store) else { return }
    console.warn(
      "a part of the store \"\(Columns.printable(store))\" was damaged on this disk and is missing: "
        + "keys may be missing or show older values; see: kith status")
  }
}

extension NodeAccess {
  /// Whether part of a store was damaged here and is missing.
  func isLacking(_ store: String) async throws -> Bool {
    try await report().stores
      .contains { $0.identifier.rawValue.utf8.elementsEqual(store.utf8) && $0.missing != nil }
  }

  /// Returns all shown values of a store, in the order of the keys' UTF-8 bytes.
  func entries(
    in store: String
  ) async throws -> [(key: String, value: PropertyListValue)] {
    try await values(in: store)
      .sorted { $0.key < $1.key }
      .map { ($0.key.text, $0.value) }
  }
}
