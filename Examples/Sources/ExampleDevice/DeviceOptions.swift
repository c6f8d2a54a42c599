import ArgumentParser
import Foundation
import Kith

/// Which device of which account this is, and where it meets the others.
package struct DeviceOptions: ParsableArguments {
  @Option(help: "The device's directory, made by `kith account create` or `kith join`.")
  package var directory: String

  @Option(help: "The address to listen on; :: takes IPv4 too.")
  package var listen = "::"

  @Option(help: "The port to listen on; 0: any.")
  package var port: UInt16 = 0

  @Option(help: "Where another device is, host:port; may be repeated.")
  package var peer: [String] = []

  package init() {}

  package var configuration: Node.Configuration {
    var configuration = Node.Configuration(directory: directory)
    configuration.hosts = [listen]
    configuration.port = port
    configuration.peers = peer
    configuration.logger.logLevel = .warning  // what people need not read
    return configuration
  }

  /// Opens the device, lends its node, and closes it whatever happens.
  package func withNode<Result>(_ body: (Node) async throws -> Result) async throws -> Result {
    let node = try await Node.open(configuration)
    do {
      let result = try await body(node)
      try node.close()
      return result
    } catch {
      try? node.close()
      throw error
    }
  }

  /// The same, while the node runs: it listens, dials and exchanges until the body is done.
  package func withRunningNode(
    _ body: @escaping @Sendable (Node) async throws -> Void
  ) async throws {
    try await withNode { node in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await node.run() }
        group.addTask { try await body(node) }
        try await group.next()  // whatever ends or fails first
        group.cancelAll()
      }
    }
  }
}

/// Prints a line at once, also into a pipe.
package func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

extension Node {
  /// Prints where the node listens, once it does.
  package func sayWhenReady() async {
    for await status in statusUpdates {
      guard let address = status.listening.first else { continue }
      say("ready on \(address)")
      return
    }
  }
}
