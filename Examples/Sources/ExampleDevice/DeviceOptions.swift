import ArgumentParser
import Foundation
import Kith

/// Which device of which account this is, and where it meets the others.
public struct DeviceOptions: ParsableArguments, Sendable {
  /// The directory of the accounts.
  @Option(help: "The directory, as `kith account create` or `kith join` made it, or a new one.")
  public var directory: String

  /// The address to listen on.
  @Option(help: "The address to listen on; :: takes IPv4 too.")
  public var listen = "::"

  /// The port to listen on.
  @Option(help: "The port to listen on; 0: any.")
  public var port: UInt16 = 0

  /// Addresses of other devices.
  @Option(help: "Where another device is, host:port; may be repeated.")
  public var peer: [String] = []

  /// The options as they are without any.
  public init() {}

  /// The configuration that they ask for.
  public var configuration: Accounts.Configuration {
    var configuration = Accounts.Configuration(directory: directory)
    configuration.hosts = [listen]
    configuration.port = port
    configuration.peers = peer
    configuration.logger.logLevel = .warning  // what people need not read
    return configuration
  }

  /// Opens the stores of whoever is signed in there, lends them, and closes them whatever happens.
  public func withAccounts<Result>(
    _ body: (Accounts) async throws -> Result
  ) async throws -> Result {
    let accounts = try Accounts(configuration)
    do {
      let result = try await body(accounts)
      try accounts.close()
      return result
    } catch {
      try? accounts.close()
      throw error
    }
  }

  /// The same, while they are served: connected to the other devices until the body is done.
  public func withRunningAccounts(
    _ body: @escaping @Sendable (Accounts) async throws -> Void
  ) async throws {
    try await withAccounts { accounts in
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await accounts.run() }
        group.addTask { try await body(accounts) }
        try await group.next()  // whatever ends or fails first
        group.cancelAll()
      }
    }
  }
}

/// Prints a line at once, also into a pipe.
public func say(_ line: String) {
  FileHandle.standardOutput.write(Data((line + "\n").utf8))
}

extension Accounts {
  /// Prints where the node listens, once it does: this program's, or the one that it is attached to.
  public func sayWhenReady() async throws {
    while true {
      if let address = try? await status().listening.first { return say("ready on \(address)") }
      try await Task.sleep(for: .milliseconds(50))
    }
  }
}
