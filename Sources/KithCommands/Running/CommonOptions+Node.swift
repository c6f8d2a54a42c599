import Foundation
import Kith
import KithStorage
import KithTerminal

extension CommonOptions {
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
    let directory = directoryURL.path
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
