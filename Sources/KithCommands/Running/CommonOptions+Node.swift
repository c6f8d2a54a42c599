import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// Returns the configuration for opening the directory's accounts without listening. `passphrase`
  /// returns that of their devices; nil: read it from its source, or ask the person.
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
  /// - Throws: ``CommandFailure`` if the user is signed out, because the command cannot work on
  ///   local stores.
  func accountDirectory() throws -> String {
    guard try !isSignedOut else {
      throw CommandFailure(
        .directory, "\(directoryURL.path): nobody is signed in here; \(Self.signingIn)")
    }
    return try Accounts.deviceDirectory(in: directoryURL.path)
  }

  /// The advice for a signed-out user.
  static let signingIn = "run kith account create, kith join or kith account sign-in"

  /// Refuses to create a device in a directory that holds one, unless the user is signed out there:
  /// then another one gets its own directory.
  func checkNewDevice() throws {
    let path = directoryURL.path
    if let refusal = DeviceDirectory.refusalOfForeign(path) { throw KithError(refusal) }
    guard try !DeviceDirectory.holdsDevice(path) || isSignedOut else {
      throw CommandFailure(
        .directory, "\(path): the directory holds a device already; give another one")
    }
  }

  /// Gives the writes of signed-out time to the account that is signed in. It returns the error
  /// instead of throwing it, because a new device must be reported first in any case.
  func adoption(passphrase: Passphrase?) async -> Result<Void, any Error> {
    do throws(KithError) {
      try await Accounts.adoptLocalWrites(accounts(passphrase: passphrase?.answer))
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// The time in which a directory's node must answer, because it may be starting or stopping.
  private static let patience = Duration.seconds(5)

  /// Calls a body with the node of the directory. If a node is running, it is used over its control
  /// socket; otherwise one is opened during the call. When signed out it is the node of the local
  /// stores, which the first write creates.
  ///
  /// - Parameters:
  ///   - needsNode: Whether the node must be running.
  ///   - readsMembershipOnly: Whether an opened node has no stores, and so needs no memory
  ///     for them.
  ///   - writes: Whether the body writes to a store.
  ///   - passphrase: The passphrase of the device's secrets; nil: read it from its source, or ask
  ///     the person.
  ///   - body: Called with the node.
  /// - Returns: The result of the body.
  /// - Throws: `KithError`, ``CommandFailure`` if a running node is missing, or the error of
  ///   the body.
  func withNode<Result: Sendable>(
    needsNode: Bool = false, readsMembershipOnly: Bool = false, writes: Bool = false,
    passphrase: PassphraseQuestion? = nil,
    _ body: (any StoreAccess) async throws -> Result
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
    let client = ControlClient(directory: directory)
    let end = ContinuousClock.now + Self.patience
    var configuration = Node.Configuration(directory: directory)
    configuration.readsMembershipOnly = readsMembershipOnly
    // Commands print errors themselves; a log line would disturb a question.
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    func use(_ node: some StoreAccess) async throws -> Result {
      let result = try await body(node)
      if writes && isSignedOut {
        console.talk(
          "Nobody is signed in at \(directoryURL.path), so this stays on this host. To have it on your "
            + "other devices, \(Self.signingIn).")
      }
      return result
    }
    while true {
      do {
        _ = try await client.version()
        return try await use(client)
      } catch let error as KithError where error.code == .notRunning {
        guard !needsNode else {
          throw isSignedOut ? Self.noProgram(in: directoryURL.path) : Self.noNode(in: directory)
        }
      }
      do {
        return try await Node.open(configuration).use { try await use($0) }
      } catch let error as KithError where error.code == .inUse && ContinuousClock.now < end {
        // Another command has it open, or its node is starting or stopping.
        try await Task.sleep(for: .milliseconds(25))
      }
    }
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
  /// Warns if a part of a store was damaged here and is still missing: a key may be missing, or show
  /// an older value.
  func warnIfLacking(_ store: String, at node: any StoreAccess) async throws {
    guard try await node.isLacking(store) else { return }
    console.warn(
      "a part of the store \"\(Columns.printable(store))\" was damaged on this disk and is missing: "
        + "keys may be missing or show older values; see: kith status")
  }
}

extension StoreAccess {
  /// Whether a part of a store was damaged here and is still missing.
  func isLacking(_ store: String) async throws -> Bool {
    try await report().stores
      .contains { $0.identifier.utf8.elementsEqual(store.utf8) && $0.isLacking }
  }

  /// Returns all shown values of a store, in the order of the keys' UTF-8 bytes.
  func entries(
    in store: String
  ) async throws -> [(key: String, value: PropertyListValue)] {
    try await values(in: store)
      .sorted { $0.key < $1.key }
      .map { ($0.key.text, $0.value) }
  }

  /// Returns the status as commands report it.
  func statusReport() async throws -> StatusReport {
    let report = try await report()
    let owner = report.isRunning ? DirectoryOwner.processID(of: report.directory) : nil
    return StatusReport(report, processID: owner)
  }
}
