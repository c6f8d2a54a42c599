import ArgumentParser
import Foundation
import Kith
import KithNetwork
import KithTerminal
import Logging
import ServiceLifecycle

struct RunCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Run the node in the foreground until SIGTERM or SIGINT.",
    discussion: """
      Serves other devices and this one's commands, and follows sign-ins and sign-outs. Logs go \
      to standard error, without keys and values. A first signal stops cleanly, a second at once. \
      It tells a service manager when it is ready (sd_notify; Type=notify).
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

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

  @Flag(
    inversion: .prefixedNo,
    help: "Keep what keys showed before, or delete it. Default: as last time.")
  var history: Bool?

  @Option(help: "The lowest level that is logged.")
  var logLevel: LogLevel = .notice

  enum LogLevel: String, CaseIterable, ExpressibleByArgument {
    case debug, info, notice, warning, error

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .notice }
  }

  func validate() throws {
    try PeerOption.check(peer)
  }

  func run() async throws {
    DescriptorLimit.raise()
    let identifier = try store.identifier
    let listen = try ListenPlan(listen, port: port)
    var configuration = options.accounts(passphrase: options.passphraseQuestion)
    if try options.isSignedOut, try await Accounts.known(configuration).isEmpty {
      throw CommandFailure.signedOut(options.directoryURL.path)
    }
    configuration.insistsOnItsOwn = true
    configuration.hosts = listen.hosts
    configuration.port = listen.port
    configuration.peers = peer
    configuration.discoversPeers = !noDiscovery
    configuration.keepsHistory = history
    let isJournal = ServiceLog.isJournal(
      STDERR_FILENO, environment: ProcessInfo.processInfo.environment)
    configuration.logger = Logger(label: "kith") { _ in ServiceLog(isJournal: isJournal) }
    configuration.logger.logLevel = logLevel.level
    try await Accounts(configuration).use { accounts in
      // Create the store now, so that it is pulled before a command opens it. If it is there, it
      // keeps its limits.
      let usage = try await accounts.node?.usage(of: identifier.rawValue)
      _ = try accounts.store(identifier.rawValue, policy: usage?.policy ?? .standard)
      try await serve(accounts)
    }
    options.console.talk("kith: stopped")
  }

  private func serve(_ accounts: Accounts) async throws {
    var groupConfiguration = ServiceGroupConfiguration(
      services: [
        .init(
          service: accounts, successTerminationBehavior: .gracefullyShutdownGroup,
          failureTerminationBehavior: .gracefullyShutdownGroup),
        .init(service: ReadyLine(accounts: accounts, console: options.console)),
        .init(service: SecondSignal()),
      ],
      gracefulShutdownSignals: [.sigterm, .sigint],
      // Its words are about services, not devices.
      logger: Logger(label: "kith") { _ in SwiftLogNoOpLogHandler() })
    groupConfiguration.maximumGracefulShutdownDuration = .seconds(10)
    do {
      try await ServiceGroup(configuration: groupConfiguration).run()
    } catch let error as KithError {
      throw Self.namingOwner(of: error)
    }
  }

  /// Adds the process that uses a taken port to the error, if the system shows it.
  private static func namingOwner(of error: KithError) -> any Error {
    guard let failure = error.cause as? NetworkFailure, failure.reason == .portTaken,
      let owner = ListeningSockets.owner(ofPort: failure.port)
    else { return error }
    return CommandFailure(
      .unreachable,
      "port \(failure.port) is taken by process \(owner.process) (\(owner.program)); choose another "
        + "with --port, or stop that one")
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

/// Reports readiness to the person and the service manager, at the start and after each sign-in or
/// sign-out.
private struct ReadyLine: Service {
  let accounts: Accounts
  let console: Console
  let manager = ServiceManager(environment: ProcessInfo.processInfo.environment)

  func run() async throws {
    await cancelWhenGracefulShutdown {
      for await account in accounts.signedInUpdates {
        guard let node = accounts.node else { continue }
        for await status in node.statusUpdates where status.isRunning && isServing(status, node) {
          tell(status, isSignedIn: account != nil)
          break
        }
      }
      // A service that ends early would end the group.
      try? await gracefulShutdown()
    }
    manager?.tellStopping()
  }

  private func tell(_ status: NodeStatus, isSignedIn: Bool) {
    let place = status.listening.joined(separator: ", ")
    let words =
      if !isSignedIn {
        "nobody is signed in: what is written stays on this host"
      } else {
        place.isEmpty ? "" : "listening on \(place)"
      }
    console.talk(
      words.isEmpty ? "kith: ready" : "kith: ready, \(words) (process \(getpid()))")
    manager?.tellReady(words.isEmpty ? "ready" : words)
  }

  private func isServing(_ status: NodeStatus, _ node: Node) -> Bool {
    !status.listening.isEmpty || node.configuration.hosts.isEmpty
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
