import ArgumentParser
import Kith
import KithTerminal

/// `kith clock`: shows whose time counts, and takes a person's word for it.
struct ClockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "clock",
    abstract: "Show whose time counts, or say that it is right.",
    subcommands: [ClockShowCommand.self, ClockAcceptCommand.self],
    defaultSubcommand: ClockShowCommand.self)
}

/// `kith clock show`.
struct ClockShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show whose time counts.",
    discussion: """
      Devices whose times differ by more than a minute do not exchange stores. The generation \
      counts how often the account's clocks went on anew because one had been ahead.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let report = try await options.withNode { try await $0.report() }
    guard let facts = ClockFacts(report) else { return }
    try options.print(facts.document, text: facts.text)
  }
}

/// `kith clock accept`.
struct ClockAcceptCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept",
    abstract: "Say that the time that `kith clock` shows is right.",
    discussion: """
      For hosts without a time service (NTP): if this device's clock had been ahead, what it \
      writes from now on is stamped with the time again. It counts once.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let report = try await options.withNode { node in
      try await node.acceptTime()
      return try await node.report()
    }
    guard let facts = ClockFacts(report) else { return }
    try options.print(facts.document, text: facts.text)
  }
}
