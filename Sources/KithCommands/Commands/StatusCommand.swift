import ArgumentParser
import Kith
import KithTerminal

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the device, its node and its stores.",
    discussion: """
      ON: how many devices are known to have all that this one wrote.

      --check is for monitors: one line, and status 7 if no node runs or answers here, the device \
      has a problem, a carrier cannot be used, or no other device is connected. A working carrier \
      counts as a connection. --peers and --behind demand more or less.

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

  private func status(needsNode: Bool) async throws -> NodeStatus {
    let isSignedOut = try options.isSignedOut
    var status = try await options.withNode(needsNode: needsNode, reads: !needsNode) {
      try await $0.status()
    }
    // The device of the local stores belongs to no account.
    if isSignedOut { (status.account, status.device, status.devices) = (nil, nil, []) }
    return status
  }

  private func judge() async throws {
    let check: StatusCheck
    do {
      let status = try await status(needsNode: true)
      check = StatusCheck(
        status, peers: peers, behind: behind?.milliseconds, nowMilliseconds: Moment.now)
    } catch {
      // No node answers: that is what a monitor asks for.
      guard let failure = CommandFailure(error), let message = failure.message else { throw error }
      check = StatusCheck(failure: message)
    }
    try options.print(check.document) { check.text($0) }
    guard check.problems.isEmpty else { throw CommandFailure(.unhealthy, nil) }
  }
}
