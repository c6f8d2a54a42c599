import ArgumentParser
import Kith
import KithTerminal

struct AccountLockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock",
    abstract: "Put the device's secrets under a passphrase, or change it.",
    discussion: """
      Each command that opens the directory then takes the passphrase from --passphrase-file, \
      KITH_PASSPHRASE_FILE, the systemd credential kith-passphrase, KITH_PASSPHRASE, or the \
      terminal, in this order. A running node serves commands without it; stop the node first. \
      If the passphrase is forgotten, only the account's other devices and the recovery key help. \
      Earlier backups of the directory stay readable.
      """)

  @Flag(help: "Change the present passphrase.")
  var change = false

  @OptionGroup var new: NewPassphraseOptions

  @OptionGroup var options: CommonOptions

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
    // Ask for the old passphrase first, as a person expects.
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
    try options.print(report(directory, isLocked: true))
    options.console.talk(
      isLocked ? "The passphrase is changed." : "The device is under the passphrase from now on.")
  }
}

struct AccountUnlockCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock",
    abstract: "Remove the passphrase of the device's secrets.",
    discussion: "Then only file modes protect them. Stop the node first.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let directory = try options.accountDirectory()
    guard try Node.isUnderPassphrase(directory: directory) else {
      throw CommandFailure(.refused, "\(directory): is under no passphrase")
    }
    try Node.changePassphrase(
      directory: directory, from: options.passphraseQuestionAskedOnce, to: nil)
    try options.print(report(directory, isLocked: false))
    options.console.talk("The device is under no passphrase any more.")
  }
}

private func report(_ directory: String, isLocked: Bool) -> Document {
  .versioned(["directory": .string(directory), "underPassphrase": .bool(isLocked)])
}
