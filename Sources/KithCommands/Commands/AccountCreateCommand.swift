import ArgumentParser
import Foundation
import Kith
import KithStorage
import KithCore
import KithTerminal

struct AccountCreateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Create an account, with this as its first device.",
    discussion: """
      Prints the recovery key once and keeps it nowhere. The key can take over the account; if \
      all devices are lost, only it regains the account.
      """)

  @OptionGroup var device: NewDeviceOptions

  @OptionGroup var options: CommonOptions

  func run() async throws {
    try options.checkNewDevice()
    let name = device.chosenName
    let passphrase = try device.passphrase()
    let (_, made) = try await Accounts.add(options.accounts()) { directory throws(KithError) in
      var isShown = false
      do throws(KithError) {
        return try Node.createAccount(
          directory: directory, name: name, passphrase: passphrase
        ) { summary, recoveryKey throws(KithError) in
          // Show the key before the account exists: it is never shown later.
          try show(
            AccountReport(summary: summary, directory: directory, recoveryKey: recoveryKey))
          isShown = true
        }.summary
      } catch {
        if isShown {
          options.console.warn(
            DeviceDirectory.holdsDevice(directory)
              ? "the account may exist: keep the recovery key above, and see: kith account list"
              : "no account was begun; the recovery key above opens nothing")
        }
        throw error
      }
    }
    let adoption = await options.adoption(passphrase: passphrase)
    if !options.json {
      options.console.talk(
        """

        Write the recovery key down now and keep it off this device: it is shown only this once.
        If every device is lost, you need it and a backup of one device's directory: the key alone
        opens nothing, nor do carriers. Copy \(Columns.printable(made)) regularly, to another disk.
        To add another device: kith invite
        """)
    }
    try adoption.get()
    options.offerService()
  }

  private func show(_ report: AccountReport) throws(KithError) {
    do throws(CommandFailure) {
      try options.print(report.document, text: report.text)
    } catch {
      throw KithError(
        .inputOutput,
        "No account was begun: \(error.message ?? "standard output did not take its recovery key")",
        cause: error)
    }
  }
}

package enum DeviceName {
  /// In bytes.
  static let limit = 64

  /// The host's name up to its first dot.
  package static var ofHost: String {
    let host = ProcessInfo.processInfo.hostName.prefix { $0 != "." }
    return host.isEmpty || host.utf8.count > limit ? "device" : String(host)
  }
}
