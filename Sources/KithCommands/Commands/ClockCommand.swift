import ArgumentParser
import Kith
import KithTerminal

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
