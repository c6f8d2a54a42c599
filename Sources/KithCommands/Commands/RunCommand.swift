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
      try await accounts.openDefaultStore(identifier)
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
    let place = status.listening.joined(separator: ", ")
    let words =
      if !isSignedIn {
        "nobody is signed in: writes stay on this host"
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
