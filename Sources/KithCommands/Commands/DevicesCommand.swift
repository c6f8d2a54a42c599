import ArgumentParser
import Kith
import KithTerminal

struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List, meet, rename or revoke the account's devices.",
    subcommands: [
      DevicesListCommand.self, DevicesMeetCommand.self, DevicesAddressesCommand.self,
      DevicesForgetCommand.self, DevicesRenameCommand.self, DevicesRevokeCommand.self,
    ],
    defaultSubcommand: DevicesListCommand.self)
}

struct DevicesListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the account's devices.",
    discussion: """
      HAS: whether a device is known to have all that this one has. Facts not heard since the \
      node's start are empty. ADDRESS of a device that is away: where it was called last, and what \
      came of it; kith devices addresses has the others.
      """)

  @Flag(help: "Also revoked devices.")
  var all = false

  @Flag(help: "Only devices that lack something, or of which that is not known.")
  var behind = false

  @Flag(
    name: [.customShort("l"), .long],
    help: "Print fingerprints, enrolment, versions and clocks too.")
  var long = false

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(ofAccount: true, reads: true) { try await $0.status() }
    let report = DevicesReport(
      status: status, showsRevoked: all, isOnlyBehind: behind, isLong: long,
      nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
    guard !options.json else { return }
    for notice in DuplicateNames.notices(status.devices) { options.console.talk(notice) }
  }
}

struct DevicesRenameCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename",
    abstract: "Rename a device for the whole account.")

  @OptionGroup var options: CommonOptions

  @Argument(
    help: "Its name, fingerprint, or the first digits of its id.", completion: .devices)
  var device: String

  @Argument(help: "The new name, 1 to 64 bytes.")
  var name: String

  func run() async throws {
    let (reference, name) = (device, name)
    let (renamed, devices) = try await options.withNode(ofAccount: true) { node in
      let devices = try await node.status().devices
      let found = try devices.find(reference)
      do {
        try await node.rename(found.id, to: name)
      } catch let error as KithError where error.code == .invalidName {
        // Leaves out the advice on `--name`: this command has no such option.
        throw CommandFailure(.refused, error.message)
      }
      return (found, devices)
    }
    let result = NodeStatus.Device(id: renamed.id, name: name)
    try options.print(.versioned(["device": result.document]))
    options.console.talk(
      "\(Columns.printable(renamed.name)) is called \(Columns.printable(name)) from now on.")
    if let notice = DuplicateNames.notice(name, renamed.fingerprint, among: devices) {
      options.console.talk(notice)
    }
  }
}
