import ArgumentParser
import Kith

/// Options of commands that set a new passphrase for a device.
struct NewPassphraseOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("The new passphrase. Default: asks twice.", valueName: "file"),
    completion: .file())
  var newPassphraseFile: String?

  /// Returns the new passphrase.
  ///
  /// - Throws: `KithError` with `passphrase` or `unsafePermissions`.
  func passphrase() throws(KithError) -> Passphrase {
    if let newPassphraseFile { return try PassphraseSource.file(newPassphraseFile).read() }
    return try PassphrasePrompt.new()
  }
}

/// Options of commands that create a device.
struct NewDeviceOptions: ParsableArguments {
  @Flag(help: "Put the secrets under a passphrase at once.")
  var lock = false

  @OptionGroup var new: NewPassphraseOptions

  func validate() throws {
    guard lock || new.newPassphraseFile == nil else {
      throw ValidationError("--new-passphrase-file goes with --lock.")
    }
  }

  func passphrase() throws(KithError) -> Passphrase? {
    lock ? try new.passphrase() : nil
  }
}
