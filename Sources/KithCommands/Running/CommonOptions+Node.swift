import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// The accounts of the directory, of which one or none is signed in; they listen nowhere. A device
  /// that is made here is put under a new passphrase, if one is given.
  func accounts(new: Passphrase? = nil) throws -> Accounts {
    var configuration = Accounts.Configuration(directory: directoryURL.path)
    configuration.hosts = []
    configuration.logger.logLevel = .critical
    configuration.passphrase = passphraseQuestion
    configuration.newDevicePassphrase = .some(new)
    return try Accounts(configuration)
  }

  /// Where the device of the account is that is signed in.
  ///
  /// - Throws: ``CommandFailure`` where nobody is: the command makes no sense for the local stores.
  func accountDirectory() throws -> String {
    let path = directoryURL.path
    guard try !Accounts.isSignedOut(in: path) else {
      throw CommandFailure(
        .directory,
        "\(path): nobody is signed in here; kith account sign-in, account create or join")
    }
    return try Accounts.deviceDirectory(in: path)
  }

  /// The accounts where somebody has signed out of the one whose device is in the directory itself:
  /// a further one gets a place of its own, and is put under a new passphrase, if one is given. Nil
  /// otherwise.
  func signedOutAccounts(new: Passphrase? = nil) throws -> Accounts? {
    let path = directoryURL.path
    guard DeviceDirectory.holdsDevice(path), try Accounts.isSignedOut(in: path) else { return nil }
    return try accounts(new: new)
  }

  /// How long a node that has the directory may take to answer: it may be about to start or stop.
  private static let patience = Duration.seconds(5)

  /// Gives the node of the directory to a body: the one that runs, over its control socket, or,
  /// where none runs, one that is opened for as long as the body takes.
  ///
  /// - Parameters:
  ///   - needsNode: Whether only a running node will do.
  ///   - readsMembershipOnly: Whether a node that is opened has no stores, and so needs no memory for
  ///     them.
  ///   - body: What to do with it.
  /// - Returns: What the body returns.
  /// - Throws: `KithError`, ``CommandFailure`` where a running node is missing, or what the body
  ///   throws.
  func withNode<Result: Sendable>(
    needsNode: Bool = false, readsMembershipOnly: Bool = false,
    _ body: (any StoreAccess) async throws -> Result
  ) async throws -> Result {
    let directory = try Accounts.deviceDirectory(in: directoryURL.path)
    let client = ControlClient(directory: directory)
    let end = ContinuousClock.now + Self.patience
    var configuration = Node.Configuration(directory: directory)
    configuration.passphrase = passphraseQuestionAskedOnce
    configuration.readsMembershipOnly = readsMembershipOnly
    // Commands say what is wrong themselves; a line of the log would stand amid a question.
    configuration.logger.logLevel = .critical
    while true {
      do {
        _ = try await client.version()
        return try await body(client)
      } catch let error as KithError where error.code == .notRunning {
        guard !needsNode else { throw Self.noNode(in: directory) }
      }
      do {
        return try await Node.open(configuration).use(body)
      } catch let error as KithError where error.code == .inUse && ContinuousClock.now < end {
        // Another command has it open, or its node is just starting or stopping.
        try await Task.sleep(for: .milliseconds(25))
      }
    }
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

extension StoreAccess {
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
