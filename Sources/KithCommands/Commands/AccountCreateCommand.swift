import ArgumentParser
import Foundation
import Kith
import KithCore

/// `kith account create`.
struct AccountCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Begin an account, with this as its first device.",
    discussion: """
      Prints the recovery key once. It is kept nowhere: whoever has it can take over the \
      account, and nobody can regain the account without it when all devices are lost.
      """)

  @OptionGroup var options: CommonOptions

  @Option(help: "What people call this device. Otherwise the host's name.")
  var name: String?

  @OptionGroup var device: NewDeviceOptions

  func run() async throws {
    let path = options.directoryURL.path
    let name = name ?? DeviceName.ofHost
    let summary: AccountSummary
    let recoveryKey: String
    let passphrase = try device.passphrase()
    if let accounts = try options.signedOutAccounts(new: passphrase) {
      (summary, recoveryKey) = try await accounts.use { try await $0.createAccount(name: name) }
    } else {
      (summary, recoveryKey) = try Node.createAccount(
        directory: path, name: name, passphrase: passphrase)
    }
    let directory = try Accounts.deviceDirectory(in: path)
    let report = AccountReport(
      summary, directory: directory, recoveryKey: recoveryKey)
    do {
      try options.print(report.document, text: report.text)
    } catch {
      // The account exists, and nobody will ever see the key again.
      options.console.warn(
        "the account is begun, and standard output did not take its recovery key, which is: "
          + recoveryKey)
      throw error
    }
    if !options.json {
      options.console.talk(
        """

        Write the recovery key down now and keep it off this device: it is shown only this once.
        With it, and one device's directory, you regain the account when every device is lost.
        Next: `kith run` to start the node, `kith invite` to add another device.
        """)
    }
  }
}

/// What people call a device that was given no name.
enum DeviceName {
  /// The most bytes of a name.
  static let limit = 64

  /// The host's name up to its first dot.
  static var ofHost: String {
    let host = ProcessInfo.processInfo.hostName.prefix { $0 != "." }
    return host.isEmpty || host.utf8.count > limit ? "device" : String(host)
  }
}
