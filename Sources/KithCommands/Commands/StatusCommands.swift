import ArgumentParser
import Kith
import KithCore
import KithTerminal

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the device, its node and its stores.",
    discussion: """
      ON: how many devices are known to have all that this one wrote.

      --check is for monitors: one line, and status 7 if no node runs or answers here, the device \
      has a problem, a carrier cannot be used, or no other device is connected. A working carrier \
      counts as a connection. --peers and --behind demand more or less. A device that was not heard \
      since the node started may be behind: --behind names it, and it is no problem.

        kith status --check --peers 2 --behind 1h
      """)

  @Flag(help: "Print one line: what is wrong, or that all is well.")
  var check = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "With --check: how many devices must be connected.", valueName: "number"))
  var peers: Int?

  @Option(
    help: ArgumentHelp(
      "With --check: how long a device may lack something, such as 30m, 1h or 2d.",
      valueName: "time"))
  var behind: TimeSpan?

  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard check || peers == nil && behind == nil else {
      throw ValidationError("Give --peers and --behind with --check only.")
    }
    guard peers ?? 0 >= 0 else { throw ValidationError("The number of devices must be 0 or more.") }
  }

  func run() async throws {
    if check { return try await judge() }
    let status = try await status(needsNode: false)
    let report = StatusReport(status: status, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
  }

  /// A monitor waits so long for another process to serve the directory, and so long for an answer.
  private static let longestCheck = Duration.seconds(2)

  private func status(
    needsNode: Bool, within limit: Duration? = nil, passphrase: PassphraseQuestion? = nil
  ) async throws -> NodeStatus {
    let isSignedOut = try options.isSignedOut
    var status = try await options.withNode(
      needsNode: needsNode, reads: !needsNode, waiting: limit ?? CommonOptions.timeout,
      answering: limit, passphrase: passphrase
    ) {
      try await $0.status()
    }
    if let pending = Accounts.pendingAdoption(in: options.directoryURL.path) {
      status.problems.append(pending)
    }
    // The device of the local stores belongs to no account.
    if isSignedOut { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  private func judge() async throws {
    let check = try await makeCheck()
    try options.print(check.document) { check.text($0) }
    guard check.problems.isEmpty else { throw CommandFailure(.unhealthy, nil) }
  }

  /// Asks the node. Without one, the directory may say why none can start, and how many devices it
  /// would meet. Nobody is asked for a passphrase.
  private func makeCheck() async throws -> StatusCheck {
    let source = options.passphraseSource
    let look: Result<NodeStatus, any Error> = await Result(awaiting: {
      try await status(needsNode: false, within: Self.longestCheck) { () throws(KithError) in
        guard let source else { throw KithError(.passphrase, "No passphrase was given.") }
        return try source.read()
      }
    })
    if case .success(let status) = look, status.isRunning { return judged(status) }
    // A node is there, and does not answer.
    if case .failure(let error as KithError) = look, error.code == .timedOut {
      return StatusCheck(failures: [CommandFailure(error)?.message ?? error.message])
    }
    do {
      // One may have started meanwhile.
      return judged(try await status(needsNode: true))
    } catch {
      // No node answers: that is what a monitor asks for.
      guard let failure = CommandFailure(error), let message = failure.message else { throw error }
      guard failure.status == .unreachable else { return StatusCheck(failures: [message]) }
      switch look {
      case .success(let status):
        return StatusCheck(failures: [message] + status.problems.map(\.description), status)
      case .failure(let error):
        let isLocked = (error as? KithError)?.code == .passphrase && source == nil
        guard !isLocked, let reason = CommandFailure(error)?.message, reason != message else {
          return StatusCheck(failures: [message])
        }
        return StatusCheck(failures: ["no node runs here, and none can start: \(reason)"])
      }
    }
  }

  private func judged(_ status: NodeStatus) -> StatusCheck {
    StatusCheck(status, peers: peers, behind: behind?.milliseconds, nowMilliseconds: Moment.now)
  }
}

struct SyncCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sync",
    abstract: "Wait until the other devices have this one's writes.",
    discussion: """
      Looks at the carriers at once. Ends when all devices have the writes, or when all carriers \
      hold them and no connected device lacks them; with --devices, when so many have them. \
      When the time is over, one carrier that holds them is enough, without --devices; otherwise \
      status 5, with the document. Needs a running node.
      """)

  /// In seconds; a node has the same limit.
  static let longestWait = 3_600.0

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The longest wait.", valueName: "seconds"))
  var timeout: Double = 5

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "How many devices must have them. Default: all.", valueName: "number"))
  var devices: Int?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard timeout >= 0, timeout <= Self.longestWait else {
      throw ValidationError("The timeout must be 0 to 3600 seconds.")
    }
    guard devices ?? 0 >= 0 else {
      throw ValidationError("The number of devices must be 0 or more.")
    }
  }

  func run() async throws {
    _ = try options.accountDirectory()
    let store = try store.identifier
    let (identifier, devices) = (store.rawValue, devices)
    let timeout = Duration.milliseconds(Int(timeout * 1_000))
    let (report, status) = try await options.withNode(needsNode: true) { node in
      try await node.checkMember()
      let report = try await node.waitUntilSynced(
        identifier, timeout: timeout, devices: devices)
      return (report, try await node.status())
    }
    try options.print(report.document(store: identifier, status: status)) { style in
      report.text(style, store: store, status: status, nowMilliseconds: Moment.now)
    }
    let isEnough =
      devices.map { report.complete.count >= $0 }
      ?? (report.isComplete || !report.carriers.isEmpty)
    if !isEnough {
      let reason = SyncShortfall(
        report: report, status: status, store: store, wanted: devices,
        nowMilliseconds: Moment.now)
      throw CommandFailure(.unreachable, reason.description)
    }
    if report.complete.isEmpty && report.incomplete.isEmpty {
      options.console.talk("kith: \(SyncShortfall.noOthers)")
    }
  }
}

struct ClockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clock",
    abstract: "Show whose time counts, or confirm it.",
    subcommands: [ClockShowCommand.self, ClockAcceptCommand.self],
    defaultSubcommand: ClockShowCommand.self)
}

struct ClockShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show whose time counts.",
    discussion: """
      Devices more than a minute apart do not exchange stores. The generation counts how often the \
      account's clocks started anew because one was ahead.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let report = ClockReport(
      status: try await options.withNode(ofAccount: true, reads: true) { try await $0.status() })
    try options.print(report.document, text: report.text)
  }
}

struct ClockAcceptCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept",
    abstract: "Confirm, once, the time that `kith clock` shows.",
    discussion: """
      For hosts without a time service (NTP): if this device's clock was ahead, later writes get \
      the right time again.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(ofAccount: true) { node in
      try await node.acceptTime()
      return try await node.status()
    }
    let report = ClockReport(status: status)
    try options.print(report.document, text: report.text)
  }
}
