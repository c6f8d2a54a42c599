import ArgumentParser
import Kith
import KithTerminal

/// `kith account lock`.
struct AccountLockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock",
    abstract: "Put the device's secrets under a passphrase, or under another one.",
    discussion: """
      From then on every command that opens the directory needs the passphrase: --passphrase-file, \
      KITH_PASSPHRASE_FILE, the systemd credential kith-passphrase, KITH_PASSPHRASE, or a question \
      on the terminal, in this order. A node that runs serves commands without it. Nothing helps \
      who forgets it, but the account's other devices and the recovery key. What backups hold of \
      the directory from before stays readable. The node must be stopped.
      """)

  @OptionGroup var options: CommonOptions

  @Flag(help: "Change the passphrase that the secrets are under.")
  var change = false

  @OptionGroup var new: NewPassphraseOptions

  func run() async throws {
    let directory = try options.accountDirectory()
    let isLocked = try Node.isUnderPassphrase(directory: directory)
    guard isLocked == change else {
      throw CommandFailure(
        .refused,
        isLocked
          ? "\(directory): is under a passphrase already; change it with --change"
          : "\(directory): is under no passphrase; leave --change out")
    }
    let ask = options.passphraseQuestionAskedOnce
    // Asked in the order that a person expects.
    let old = isLocked ? try ask() : nil
    // A first passphrase may come from the source that later commands read.
    let passphrase =
      if let source = options.passphraseSource, !isLocked, new.newPassphraseFile == nil {
        try source.read()
      } else {
        try new.passphrase()
      }
    try Node.changePassphrase(
      directory: directory, from: old?.answer, to: passphrase)
    try options.print(LockReport.document(directory, isLocked: true)) { _ in "" }
    options.console.talk(
      isLocked ? "The passphrase is changed." : "The device is under the passphrase from now on.")
  }
}

/// `kith account unlock`.
struct AccountUnlockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Take the device's secrets out from under their passphrase.",
    discussion: "From then on the modes of files alone protect them. The node must be stopped.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let directory = try options.accountDirectory()
    guard try Node.isUnderPassphrase(directory: directory) else {
      throw CommandFailure(.refused, "\(directory): is under no passphrase")
    }
    try Node.changePassphrase(
      directory: directory, from: options.passphraseQuestionAskedOnce, to: nil)
    try options.print(LockReport.document(directory, isLocked: false)) { _ in "" }
    options.console.talk("The device is under no passphrase any more.")
  }
}

/// The JSON reports of `account lock` and `account unlock`.
private enum LockReport {
  static func document(_ directory: String, isLocked: Bool) -> Document {
    .versioned(["directory": .string(directory), "underPassphrase": .bool(isLocked)])
  }
}
