import ArgumentParser
import Kith

struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the device, its node and its stores.",
    discussion: "ON: how many devices are known to have all that this one wrote.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let isSignedOut = try options.isSignedOut
    var status = try await options.withNode(reads: true) { try await $0.status() }
    // The device of the local stores belongs to no account.
    if isSignedOut { (status.account, status.device, status.devices) = (nil, nil, []) }
    let report = StatusReport(status: status, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
  }
}
