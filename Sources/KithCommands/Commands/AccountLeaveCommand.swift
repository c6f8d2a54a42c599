import ArgumentParser
import Kith
import KithTerminal

struct AccountLeaveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "leave",
    abstract: "Remove an account from this host: this device's keys and data.",
    discussion: """
      The account's other devices keep what reached them: not this one's unpublished writes, nor \
      its history. They count this device until one of them revokes it (kith devices revoke): it \
      cannot revoke itself. Refused while its node runs, and if writes would be lost; see --force.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: ArgumentHelp(
      "Its id (kith account list), or first digits. Default: the one signed in, or the only one."))
  var account: String?

  @Flag(help: "Also while its node runs, or if writes are lost, or it cannot be opened.")
  var force = false

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  func run() async throws {
    let console = options.console
    let configuration = options.accounts()
    let known: [Accounts.KnownAccount]
    do throws(KithError) {
      known = try await Accounts.known(configuration)
    } catch {
      let path = configuration.directory
      guard force, account == nil, try Accounts.holdsOnlyAccountHere(in: path) else { throw error }
      return try await leaveUnopened(path, after: error)
    }
    let signedIn = account == nil ? known.last(where: \.isSignedIn) : nil
    let chosen = try signedIn ?? known.find(account)
    try Confirmation.demandPerson(unless: yes)
    let status = try await status(of: chosen, configuration)
    let own = status?.devices.first(where: \.isThisDevice)
    let name = own.map { Columns.printable($0.name, limit: 64) }
    let lost = status.map(Self.lost) ?? ["It could not be opened: its own writes may be lost."]
    console.talk(
      "\(name ?? "The device") leaves the account \(chosen.account.hex.prefix(16)): its keys and its "
        + "copy of all stores in \(Columns.printable(chosen.directory)) are removed.")
    for line in lost { console.talk(line) }
    guard lost.isEmpty || force else {
      throw CommandFailure(
        .refused, "writes would be lost; nothing was done. Pass --force to lose them")
    }
    try Confirmation.demand("This cannot be undone. Do it?", unless: yes, console)
    // A person takes time to answer, and programs may write meanwhile.
    if !yes, !force, let now = try await self.status(of: chosen, configuration) {
      guard Self.lost(now).isEmpty else {
        throw CommandFailure(.refused, "something was written meanwhile; nothing was done")
      }
    }
    try await Accounts.leave(chosen, configuration)
    let document = Document.versioned([
      "account": .string(chosen.account.hex), "device": own?.document,
      "directory": .string(chosen.directory),
    ])
    try options.print(document, after: "this host has left the account")
    console.talk(
      "This host has left the account."
        + (status?.isRevoked == true
          ? "" : " On another of its devices run: kith devices revoke \(name ?? "NAME")"))
    if (try? await Accounts.known(configuration))?.isEmpty == true { options.warnOfServices() }
  }

  /// Leaves the account of a device that does not open, and is not noted: nothing tells the account.
  private func leaveUnopened(_ path: String, after error: KithError) async throws {
    let console = options.console
    try Confirmation.demandPerson(unless: yes)
    console.talk(
      "The device leaves its account: its keys and its copy of all stores in "
        + "\(Columns.printable(path)) are removed.")
    console.talk("It could not be opened (\(error.message)): its own writes may be lost.")
    try Confirmation.demand("This cannot be undone. Do it?", unless: yes, console)
    try await Accounts.leaveAccountHere(in: path)
    try options.print(
      .versioned(["directory": .string(path)]), after: "this host has left the account")
    console.talk(
      "This host has left the account. On another of its devices run: kith devices revoke NAME")
    options.warnOfServices()
  }

  /// Nil with `--force`, if the device cannot be opened.
  private func status(
    of account: Accounts.KnownAccount, _ configuration: Accounts.Configuration
  ) async throws -> NodeStatus? {
    var configuration = configuration
    configuration.directory = account.directory
    do throws(KithError) {
      let node = try await Node.open(configuration)
      defer { try? node.close() }
      return node.status
    } catch {
      if force { return nil }
      guard error.code == .inUse else { throw error }
      throw CommandFailure(
        .directory, "\(account.directory): its node runs; stop it, or pass --force")
    }
  }

  /// Published writes have reached a peer; drafts have reached nobody. No device takes those of a
  /// revoked one, so a person may want to save them.
  static func lost(_ status: NodeStatus) -> [String] {
    guard status.members.contains(where: { !$0.isThisDevice }) else {
      return ["No other device is in the account: all its data is lost."]
    }
    return status.stores.filter { $0.drafts > 0 }.map { store in
      let name = store.identifier.rawValue
      let export = Columns.printable(StoreOptions.command("kith export", of: name))
      return "No other device has the last writes in the store "
        + "\"\(Columns.printable(name))\" (\(store.drafts)): "
        + (status.isRevoked
          ? "this one was revoked, so to keep them run \(export) >FILE first."
          : "run kith run and kith sync first.")
    }
  }
}
