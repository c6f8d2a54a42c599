import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// How the accounts of the directory are opened, listening nowhere. The passphrase is that of their
  /// devices; nil: where it lies, or the person is asked.
  func accounts(passphrase: PassphraseQuestion? = nil) -> Accounts.Configuration {
    var configuration = Accounts.Configuration(directory: directoryURL.path)
    configuration.hosts = []
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphrase ?? passphraseQuestionAskedOnce
    return configuration
  }

  /// Whether nobody is signed in in the directory: what is written there stays on this host.
  var isSignedOut: Bool {
    get throws { try Accounts.isSignedOut(in: directoryURL.path) }
  }

  /// Where the device of the account is that is signed in.
  ///
  /// - Throws: ``CommandFailure`` where nobody is: the command makes no sense for the local stores.
  func accountDirectory() throws -> String {
    guard try !isSignedOut else {
      throw CommandFailure(
        .directory, "\(directoryURL.path): nobody is signed in here; \(Self.signingIn)")
    }
    return try Accounts.deviceDirectory(in: directoryURL.path)
  }

  /// What to do where nobody is signed in.
  static let signingIn = "run kith account create, kith join or kith account sign-in"

  /// Refuses to make a device in a directory that holds one, unless nobody is signed in there: then a
  /// further one gets a place of its own.
  func checkNewDevice() throws {
    let path = directoryURL.path
    if let refusal = DeviceDirectory.refusalOfForeign(path) { throw KithError(refusal) }
    guard try !DeviceDirectory.holdsDevice(path) || isSignedOut else {
      throw CommandFailure(
        .directory, "\(path): the directory holds a device already; give another one")
    }
  }

  /// Hands what was written here while nobody was signed in to the account that is. Not thrown: a new
  /// device is to be told of in any case, and before.
  func adoption(passphrase: Passphrase?) async -> Result<Void, any Error> {
    do throws(KithError) {
      try await Accounts.adoptLocalWrites(accounts(passphrase: passphrase?.answer))
      return .success(())
    } catch {
      return .failure(error)
    }
  }

  /// How long a node that has the directory may take to answer: it may be about to start or stop.
  private static let patience = Duration.seconds(5)

  /// Gives the node of the directory to a body: the one that runs, over its control socket, or,
  /// where none runs, one that is opened for as long as the body takes. While nobody is signed in it is
  /// that of the local stores, which the first write begins.
  ///
  /// - Parameters:
  ///   - needsNode: Whether only a running node will do.
  ///   - readsMembershipOnly: Whether a node that is opened has no stores, and so needs no memory for
  ///     them.
  ///   - writes: Whether the body is to write to a store.
  ///   - passphrase: The passphrase of the device's secrets; nil: where it lies, or the person is asked.
  ///   - body: What to do with it.
  /// - Returns: What the body returns.
  /// - Throws: `KithError`, ``CommandFailure`` where a running node is missing, or what the body
  ///   throws.
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
    // Commands say what is wrong themselves; a line of the log would stand amid a question.
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
        // Another command has it open, or its node is just starting or stopping.
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

/// What a command opens, and must close however it ends.
protocol Closable {
  /// Makes durable what was written, and gives everything back.
  func close() throws(KithError)
}

extension Node: Closable {}
extension Accounts: Closable {}

extension Closable {
  /// Does something with it, and closes it.
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
  /// Says it where a part of a store was damaged here and is missing still: a key may be missing, or show
  /// an older value.
  func warnIfLacking(_ store: String, at node: any StoreAccess) async throws {
    guard try await node.isLacking(store) else { return }
    console.warn(
      "a part of the store \"\(Columns.printable(store))\" was damaged on this disk and is missing: "
        + "keys may be missing or show older values; see: kith status")
  }
}

extension StoreAccess {
  /// Whether a part of a store was damaged here and is missing still.
  func isLacking(_ store: String) async throws -> Bool {
    try await report().stores
      .contains { $0.identifier.utf8.elementsEqual(store.utf8) && $0.isLacking }
  }

  /// All that a store shows, in the order of the keys' UTF-8 bytes.
  func entries(
    in store: String
  ) async throws -> [(key: String, value: PropertyListValue)] {
    try await values(in: store)
      .sorted { $0.key < $1.key }
      .map { ($0.key.text, $0.value) }
  }

  /// The status as commands tell it.
  func statusReport() async throws -> StatusReport {
    let report = try await report()
    let owner = report.isRunning ? DirectoryOwner.processID(of: report.directory) : nil
    return StatusReport(report, processID: owner)
  }
}
