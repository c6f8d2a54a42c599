import ArgumentParser
import Kith
import KithStorage
import KithTerminal

struct AccountCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "account",
    abstract: "Create, recover or lock accounts; sign in and out.",
    subcommands: [
      AccountCreateCommand.self, AccountRecoverCommand.self, AccountListCommand.self,
      AccountSignInCommand.self, AccountSignOutCommand.self, AccountLeaveCommand.self,
      AccountLockCommand.self, AccountUnlockCommand.self,
    ])
}

struct AccountListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the accounts with a device on this host.")

  @OptionGroup var options: CommonOptions

  func run() async throws {
    var configuration = options.accounts()
    configuration.isForReading = true
    let known = try await Accounts.known(configuration)
    let report = AccountsReport(
      accounts: known, missingFiles: known.map { Accounts.missingFile(of: $0) })
    try options.print(report.document, text: report.text)
    if known.isEmpty {
      options.console.talk("Nobody has signed in here yet: kith account create, or kith join.")
    }
  }
}

struct AccountSignInCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-in",
    abstract: "Sign in to an account with a device on this host.",
    discussion: """
      Node and programs in the directory follow within a second. The account then has the writes \
      made while nobody was signed in, except those on its own keys, which kith unshown lists.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "Its id (kith account list), or first digits. Default: the only one here."),
    completion: .accounts)
  var account: String?

  func run() async throws {
    let passphrase = options.passphraseQuestionAskedOnce
    let configuration = options.accounts(passphrase: passphrase)
    let chosen = try await Accounts.known(configuration).find(account)
    // A node that serves the local stores will serve the account soon.
    let local = try Accounts.deviceDirectory(in: options.directoryURL.path)
    let hadNode = try await NodeConnector.wait(for: local, toBeServed: true, within: .zero)
    let hasLost = try await Accounts.signIn(to: chosen, configuration)
    let hasNode = try await NodeConnector.wait(
      for: chosen.directory, toBeServed: true, within: hadNode ? SignInReport.timeout : .zero)
    try options.print(SignInReport.document(chosen, isSignedIn: true))
    options.console.talk(
      "Signed in to \(chosen.account.hex.prefix(16)). "
        + (hasNode ? "Its node runs." : "Start the node with: kith run"))
    // Without a node the device is opened, which may take a passphrase, only if there is news.
    guard hasNode || hasLost, !options.quiet else { return }
    let unshown = try? await options.withNode(passphrase: passphrase) { node in
      try await node.status().unshownNotice
    }
    if let unshown = unshown ?? nil { options.console.talk(unshown) }
  }
}

enum SignInReport {
  /// How long nodes may take to follow.
  static let timeout = Duration.seconds(5)

  static func document(
    _ account: Accounts.KnownAccount, isSignedIn: Bool, servedBy process: Int32? = nil
  ) -> Document {
    .versioned([
      "account": .string(account.account.hex), "directory": .string(account.directory),
      "isSignedIn": .bool(isSignedIn), "servedBy": process.map { .int(Int($0)) },
    ])
  }
}

struct AccountSignOutCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sign-out",
    abstract: "Sign out: programs then see local stores.",
    discussion: """
      The account's data stays here and on its other devices. `kith run` and programs in the \
      directory follow within a second: they exchange nothing, and writes stay on this host until \
      somebody signs in.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    guard let (left, unadopted) = try await Accounts.signOut(options.accounts()) else {
      throw CommandFailure.signedOut(options.directoryURL.path)
    }
    let isLeft = try await NodeConnector.wait(
      for: left.directory, toBeServed: false, within: SignInReport.timeout)
    let server = isLeft ? nil : DeviceDirectory.owner(of: left.directory)
    try options.print(SignInReport.document(left, isSignedIn: false, servedBy: server))
    let flag = options.directory.map { " --directory \(ShellText.quoted($0))" } ?? ""
    options.console.talk(
      "Signed out. Sign in again with: kith account sign-in \(left.account.hex.prefix(16))\(flag)")
    if let unadopted { options.console.warn(unadopted.description) }
    if let server {
      options.console.warn(
        "process \(server) has opened the account's device by itself, and goes on exchanging: stop it"
      )
    }
  }
}

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
    try options.print(
      report(directory, isLocked: true), after: "the device is under the new passphrase")
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
    try options.print(
      report(directory, isLocked: false), after: "the device is under no passphrase any more")
    options.console.talk("The device is under no passphrase any more.")
  }
}

private func report(_ directory: String, isLocked: Bool) -> Document {
  .versioned(["directory": .string(directory), "underPassphrase": .bool(isLocked)])
}
