import ArgumentParser
import Kith

/// `kith status`.
struct StatusCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the device, its node and its stores.",
    discussion: "ON counts the devices known to have all that this one wrote.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let isSignedOut = try options.isSignedOut
    var report = try await options.withNode { try await $0.statusReport() }
    if isSignedOut { report.showLocalStores() }
    try options.print(report.document, text: report.text)
  }
}
