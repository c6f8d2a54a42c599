import ArgumentParser
import FoundationEssentials
package import Kith
import KithCore
import KithStorage
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

  /// Throws if a person would see nothing of a name. The account may have such a name of before; no
  /// device gets one here.
  package static func check(_ name: String) throws(KithError) {
    let isSeen = name.unicodeScalars.contains { $0 != " " && CharacterEffect($0) == .drawn }
    guard name.isEmpty || isSeen else {
      throw KithError(.invalidName, "A person would see nothing of this name. Use letters.")
    }
  }

  /// The host's name up to its first dot.
  package static var ofHost: String {
    let host = ProcessInfo.processInfo.hostName.prefix { $0 != "." }
    return host.isEmpty || host.utf8.count > limit ? "device" : String(host)
  }
}

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
    try options.print(report.document, text: report.text, after: "the account is regained")
    try adoption.get()
    options.console.talk("The account is regained. Start its node with: kith run")
  }
}

struct NewPassphraseOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The new passphrase. Default: asks twice.", valueName: "file"),
    completion: .file())
  var newPassphraseFile: String?

  func passphrase() throws(KithError) -> Passphrase {
    if let newPassphraseFile { return try PassphraseSource.file(newPassphraseFile).read() }
    return try PassphrasePrompt.new()
  }
}

struct NewDeviceOptions: ParsableArguments {
  @Option(help: "This device's name. Default: the host's.")
  var name: String?

  @Flag(help: "Put the secrets under a passphrase at once.")
  var lock = false

  @OptionGroup var new: NewPassphraseOptions

  var chosenName: String { name ?? DeviceName.ofHost }

  func validate() throws {
    guard lock || new.newPassphraseFile == nil else {
      throw ValidationError("--new-passphrase-file goes with --lock.")
    }
    guard name != "" else {
      throw ValidationError("The device's name is empty. Leave --name out for the host's.")
    }
    if let name { try DeviceName.check(name) }
  }

  func passphrase() throws(KithError) -> Passphrase? {
    lock ? try new.passphrase() : nil
  }
}
