import ArgumentParser
import Kith
import KithTerminal

struct AccountShowCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the account and its devices.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    _ = try options.accountDirectory()
    let status = try await options.withNode { try await $0.report() }
    guard let account = status.account, let device = status.devices.first(where: \.isThisDevice)
    else {
      throw CommandFailure(.directory, "this device is in no account")
    }
    let report = AccountReport(
      account: account, device: device, directory: status.directory,
      others: status.others)
    try options.print(report.document, text: report.text)
  }
}
