import ArgumentParser
import Kith
import KithStorage
import KithTerminal

struct AccountRecoverCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Recover the account with its recovery key if no device is left.",
    discussion: """
      Makes a new device from a dead device's directory, or its backup, with its unpublished \
      writes. --passphrase-file and the environment name the passphrase of that directory.
      """)

  @Option(
    help: ArgumentHelp("The dead device's directory.", valueName: "path"), completion: .directory)
  var from: String

  @Option(
    help: ArgumentHelp(
      "The recovery key; - reads standard input.", valueName: "file"),
    completion: .file())
  var recoveryKeyFile = "-"

  @OptionGroup var device: NewDeviceOptions

  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard !from.isEmpty else { throw ValidationError("--from names no directory.") }
  }

  func run() async throws {
    try options.checkNewDevice()
    let source = CommonOptions.exactly(from).path
    guard DeviceDirectory.holdsDevice(source) else {
      throw CommandFailure(
        .directory,
        "\(source): holds no device; --from names a device's directory, or a copy of one")
    }
    if recoveryKeyFile == "-" && Terminal.hasInput {
      options.console.prompt("Recovery key: ")
    }
    let text = try InputText.line(of: recoveryKeyFile)
    let passphrase = try device.passphrase()
    let (summary, directory) = try await Accounts.add(options.accounts()) {
      directory throws(KithError) in
      try Node.recoverAccount(
        directory: directory, from: source, recoveryKey: text,
        name: device.chosenName, passphrase: passphrase,
        sourcePassphrase: options.passphraseQuestion)
    }
    let adoption = await options.adoption(passphrase: passphrase)
    let report = AccountReport(summary: summary, directory: directory)
    try options.print(report.document, text: report.text)
    try adoption.get()
    options.console.talk("The account is regained. Start its node with: kith run")
  }
}
