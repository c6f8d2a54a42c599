import ArgumentParser
import Glibc
import Kith
import KithCarriers
import KithCore
import KithTerminal
import Logging
import ServiceLifecycle

/// The options of a command that runs a node.
struct NodeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An address to listen on; may be repeated. Default: all.", valueName: "host[:port]"))
  var listen: [String] = []

  @Option(
    parsing: .unconditional,
    help: "The port to listen on; 0: any free one. Default: 4114.")
  var port: UInt16?

  @Option(
    help: ArgumentHelp(
      "Another device's address; may be repeated. Kith remembers those it met.",
      valueName: "host:port"))
  var peer: [String] = []

  @Flag(help: "Neither find other devices on the LAN nor be found.")
  var noDiscovery = false

  func validate() throws { try PeerOption.check(peer) }

  func apply(to configuration: inout Accounts.Configuration) throws(CommandFailure) {
    let plan = try ListenPlan(listen, port: port)
    configuration.hosts = plan.hosts
    configuration.port = plan.port
    configuration.peers = peer
    configuration.discoversPeers = !noDiscovery
    configuration.carriers = openCarrier
  }
}

enum PeerOption {
  static func check(_ texts: [String]) throws {
    do throws(KithError) {
      try Node.checkPeers(texts)
    } catch {
      throw ValidationError("--peer: \(error.message)")
    }
  }
}

extension Accounts {
  /// Creates the default store now, so that it is pulled before a command opens it. If it is there, it
  /// keeps its limits. Does nothing if another program has the directory open.
  func openDefaultStore(_ store: StoreIdentifier) async throws {
    guard let usage = try await node?.usage(of: store.rawValue) else { return }
    _ = try self.store(store.rawValue, policy: usage.policy)
  }

  /// Runs them, and a service beside them, until SIGTERM or SIGINT. A second signal ends the process
  /// at once.
  func runUntilSignal(beside service: any Service) async throws {
    var configuration = ServiceGroupConfiguration(
      services: [
        .init(
          service: self, successTerminationBehavior: .gracefullyShutdownGroup,
          failureTerminationBehavior: .gracefullyShutdownGroup),
        .init(service: service),
        .init(service: SecondSignal()),
      ],
      gracefulShutdownSignals: [.sigterm, .sigint],
      // Its words are about services, not devices.
      logger: Logger(label: "kith") { _ in SwiftLogNoOpLogHandler() })
    configuration.maximumGracefulShutdownDuration = .seconds(10)
    try await ServiceGroup(configuration: configuration).run()
  }
}

/// Restores the default handling of signals: a second one ends the process at once.
private struct SecondSignal: Service {
  func run() async throws {
    try? await gracefulShutdown()
    signal(SIGTERM, SIG_DFL)
    signal(SIGINT, SIG_DFL)
  }
}
