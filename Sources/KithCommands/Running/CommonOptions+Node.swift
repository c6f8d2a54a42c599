import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
  /// The accounts of the directory, of which one or none is signed in; they listen nowhere.
  func accounts() throws -> Accounts {
    var configuration = Accounts.Configuration(directory: directoryURL.path)
    configuration.hosts = []
    configuration.logger.logLevel = .critical
    return try Accounts(configuration)
  }

  /// Refuses what makes no sense for the local stores of nobody.
  func requireAccount() throws {
    guard try Accounts.deviceDirectory(in: directoryURL.path) == directoryURL.path + "/local" else {
      return
    }
    throw CommandFailure(
      .directory,
      "\(directoryURL.path): nobody is signed in here; kith account sign-in, account create or join"
    )
  }

  /// The accounts where somebody has signed out of the one whose device is in the directory itself:
  /// a further one gets a place of its own. Nil otherwise.
  func signedOutAccounts() throws -> Accounts? {
    let path = directoryURL.path
    guard DeviceDirectory.holdsDevice(path),
      try Accounts.deviceDirectory(in: path) == path + "/local"
    else { return nil }
    return try accounts()
  }

  /// How long a node that has the directory may take to answer: it may be about to start or stop.
  private static let patience = Duration.seconds(5)

  /// Gives the node of the directory to a body: the one that runs, over its control socket, or,
  /// where none runs, one that is opened for as long as the body takes.
  ///
  /// - Parameters:
  ///   - needsNode: Whether only a running node will do.
  ///   - body: What to do with it.
  /// - Returns: What the body returns.
  /// - Throws: `KithError`, ``CommandFailure`` where a running node is missing, or what the body
  ///   throws.
  func withNode<Result: Sendable>(
    needsNode: Bool = false, _ body: (any StoreAccess) async throws -> Result
  ) async throws -> Result {
    let directory = try Accounts.deviceDirectory(in: directoryURL.path)
    let client = ControlClient(directory: directory)
    let end = ContinuousClock.now + Self.patience
    while true {
      do {
        _ = try await client.version()
        return try await body(client)
      } catch let error as KithError where error.code == .notRunning {
        guard !needsNode else { throw Self.noNode(in: directory) }
      }
      do {
        let node = try await Node.open(.init(directory: directory))
        return try await Self.use(node, body)
      } catch let error as KithError where error.code == .inUse && ContinuousClock.now < end {
        // Another command has it open, or its node is just starting or stopping.
        try await Task.sleep(for: .milliseconds(25))
      }
    }
  }

  private static func use<Result: Sendable>(
    _ node: Node, _ body: (any StoreAccess) async throws -> Result
  ) async throws -> Result {
    let result: Result
    do {
      result = try await body(node)
    } catch {
      try? node.close()
      throw error
    }
    try node.close()
    return result
  }

  private static func noNode(in directory: String) -> CommandFailure {
    CommandFailure(
      .unreachable, "\(directory): no node runs here, and this needs one; start it with `kith run`")
  }
}

extension Accounts {
  /// Does something with accounts, and closes them.
  func use<Result>(_ body: (Accounts) throws -> Result) throws -> Result {
    let result: Result
    do {
      result = try body(self)
    } catch {
      try? close()
      throw error
    }
    try close()
    return result
  }

  /// Does something with accounts, and closes them.
  func use<Result>(_ body: (Accounts) async throws -> Result) async throws -> Result {
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
