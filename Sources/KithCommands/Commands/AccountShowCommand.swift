import ArgumentParser
import Kith
import KithTerminal

/// `kith account show`.
struct AccountShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the account and its devices.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let status = try await options.withNode { try await $0.statusReport() }
    guard let account = status.account, let device = status.devices.first(where: \.isSelf) else {
      throw CommandFailure(.directory, "this device is in no account")
    }
    let report = AccountReport(
      account: account, device: device, directory: status.directory,
      others: status.devices.filter { !$0.isSelf })
    try options.print(report.document, text: report.text)
  }
}
