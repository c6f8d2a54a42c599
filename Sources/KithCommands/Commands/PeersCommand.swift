import ArgumentParser
import Kith

/// `kith peers`.
struct PeersCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "peers",
    abstract: "Show the account's devices and how they are reached.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let status = try await options.withNode { try await $0.statusReport() }
    let report = PeersReport(devices: status.devices, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
  }
}
