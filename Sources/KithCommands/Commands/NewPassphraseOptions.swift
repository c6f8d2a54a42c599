import ArgumentParser
import Kith

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
  }

  func passphrase() throws(KithError) -> Passphrase? {
    lock ? try new.passphrase() : nil
  }
}
