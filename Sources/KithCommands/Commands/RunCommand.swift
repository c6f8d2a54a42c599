import ArgumentParser
import FoundationEssentials
import Glibc
import Kith
import KithCarriers
import KithCore
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

  @OptionGroup var node: NodeOptions

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

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    DescriptorLimit.raise()
    // The reader of the log may close it.
    signal(SIGPIPE, SIG_IGN)
    let identifier = try store.identifier
    var configuration = options.accounts(passphrase: options.passphraseQuestion)
    if try options.isSignedOut, try await Accounts.known(configuration).isEmpty {
      throw CommandFailure.signedOut(options.directoryURL.path)
    }
    configuration.insistsOnItsOwn = true
    try node.apply(to: &configuration)
    configuration.keepsHistory = history
    configuration.logger = ServiceLog.logger(logLevel.level)
    try await Accounts(configuration).use { accounts in
      try await accounts.openDefaultStore(identifier, options.console)
      do {
        try await accounts.runUntilSignal(
          beside: ReadyLine(accounts: accounts, console: options.console))
      } catch let error as KithError {
        throw Self.namingOwner(of: error)
      }
    }
    options.console.talk("kith: stopped")
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
    let addresses = status.listening.joined(separator: ", ")
    let words =
      if !isSignedIn {
        "nobody is signed in: writes stay on this host"
      } else {
        addresses.isEmpty ? "" : "listening on \(addresses)"
      }
    console.talk(
      words.isEmpty ? "kith: ready" : "kith: ready, \(words) (process \(getpid()))")
    manager?.tellReady(words.isEmpty ? "ready" : words)
  }

  private func isServing(_ status: NodeStatus, _ node: Node) -> Bool {
    !status.listening.isEmpty || node.configuration.hosts.isEmpty
  }
}

struct ListenPlan: Equatable {
  static let defaultPort: UInt16 = 4114

  /// `::` includes IPv4.
  var hosts: [String]
  /// 0: any.
  var port: UInt16

  /// All ports, including that of `--port`, must be the same.
  init(_ texts: [String], port: UInt16?) throws(CommandFailure) {
    let endpoints = try texts.map(Self.parse)
    let hosts = endpoints.map(\.host)
    let ports = [port].compactMap(\.self) + endpoints.compactMap(\.port)
    let first = ports.first ?? Self.defaultPort
    guard ports.allSatisfy({ $0 == first }) else {
      throw CommandFailure(
        .usage, "a node listens on one port; give the same to every --listen, or --port once")
    }
    self.hosts = hosts.isEmpty ? ["::"] : hosts
    self.port = first
  }

  /// Reads `192.0.2.1`, `192.0.2.1:4114`, `[::1]:4114`, `::1` or `name:0`.
  private static func parse(_ text: String) throws(CommandFailure) -> (
    host: String, port: UInt16?
  ) {
    let wrong = CommandFailure(
      .usage, "'\(text)' is no address to listen on; write 0.0.0.0, 192.0.2.1:4114 or [::1]:4114")
    var host = Substring(text)
    var rest: Substring = ""
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { throw wrong }
      host = text[text.index(after: text.startIndex)..<end]
      rest = text[text.index(after: end)...]
    } else if text.count(where: { $0 == ":" }) == 1, let colon = text.firstIndex(of: ":") {
      host = text[..<colon]
      rest = text[colon...]
    }
    guard !host.isEmpty else { throw wrong }
    if rest.isEmpty { return (String(host), nil) }
    guard rest.first == ":", let port = PeerAddress.port(rest.dropFirst()) else { throw wrong }
    return (String(host), port)
  }
}

/// The options of a command that runs a node.
struct NodeOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "An address to listen on; may be repeated. Default: all.", valueName: "host[:port]"))
  var listen: [String] = []

  @Option(
    parsing: .unconditional,
    help: "The port to listen on; 0: any free one. Default: 4114.")
  var port: PortNumber?

  @Option(
    help: ArgumentHelp(
      "Another device's address; may be repeated. Kith remembers those it met.",
      valueName: "host:port"))
  var peer: [String] = []

  @Flag(help: "Neither find other devices on the LAN nor be found.")
  var noDiscovery = false

  func validate() throws { try PeerOption.check(peer) }

  func apply(to configuration: inout Accounts.Configuration) throws(CommandFailure) {
    let plan = try ListenPlan(listen, port: port?.number)
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
  /// keeps its limits. Does nothing if another program has the directory open. If the account
  /// has too many stores, warns: the node serves those that exist.
  func openDefaultStore(_ store: StoreIdentifier, _ console: Console) async throws {
    do throws(KithError) {
      guard let usage = try await node?.usage(of: store.rawValue) else { return }
      _ = try self.store(store.rawValue, policy: usage.policy)
    } catch {
      guard error.code == .tooManyStores else { throw error }
      console.warn(
        "the store \"\(Columns.printable(store.rawValue))\" is not made: the account has "
          + "\(Limits.stores) stores, as many as a device keeps; see: kith stores --all")
    }
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

enum DescriptorLimit {
  /// The soft limit is low only for programs that use select(2).
  static func raise() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
      limit.rlim_cur < limit.rlim_max
    else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
