import ArgumentParser
import Kith

struct PeersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "peers",
    abstract: "Show the account's devices and their connections.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let status = try await options.withNode { try await $0.report() }
    let report = PeersReport(status: status, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
  }
}
