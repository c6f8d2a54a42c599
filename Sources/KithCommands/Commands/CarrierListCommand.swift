import ArgumentParser
import Kith
import KithTerminal

struct CarrierListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the carriers, and what they hold.",
    discussion: """
      HOLDS ALL: since when a listing shows everything that this device covers. \
      kith devices says whether another device has got it.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(reads: true) { try await $0.status() }
    let report = CarriersReport(status: status, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
    if !options.json, status.carriers.isEmpty {
      options.console.talk("There is no carrier. Add one with: kith carrier add")
    }
  }
}
