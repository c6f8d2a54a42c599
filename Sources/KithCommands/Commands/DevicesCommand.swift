import ArgumentParser
import Kith
import KithTerminal

/// `kith devices`: lists, renames and revokes.
struct DevicesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices",
    abstract: "List the account's devices, rename them, or take one out.",
    subcommands: [
      DevicesListCommand.self, DevicesRenameCommand.self, DevicesRevokeCommand.self,
    ],
    defaultSubcommand: DevicesListCommand.self)
}

/// `kith devices list`.
struct DevicesListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the account's devices.",
    discussion: """
      HAS says whether a device is known to have all that this one has. What was not heard since \
      the node started is left empty.
      """)

  @OptionGroup var options: CommonOptions

  @Flag(help: "Those that were taken out, too.")
  var all = false

  func run() async throws {
    _ = try options.accountDirectory()
    let devices = try await options.withNode { try await $0.deviceReports() }
    let report = DevicesReport(
      devices: devices, showsRevoked: all, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
    if !options.json { for notice in SharedNames.notices(devices) { options.console.talk(notice) } }
  }
}

/// `kith devices rename`.
struct DevicesRenameCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rename",
    abstract: "Call a device something else, on all devices of the account.")

  @OptionGroup var options: CommonOptions

  @Argument(help: "The device's name, its fingerprint, or the first digits of its id.")
  var device: String

  @Argument(help: "What to call it, 1 to 64 bytes.")
  var name: String

  func run() async throws {
    _ = try options.accountDirectory()
    let (reference, name) = (device, name)
    let (renamed, devices) = try await options.withNode { node in
      let devices = try await node.deviceReports()
      let found = try DeviceReference(reference).find(in: devices)
      do {
        try await node.rename(found.deviceID, to: name)
      } catch let error as KithError where error.code == .invalidName {
        // This command has no option for the name.
        throw CommandFailure(.refused, error.message)
      }
      return (found, devices)
    }
    try options.print(
      .versioned([
        "device": .object([
          "fingerprint": .string(renamed.fingerprint), "id": .string(renamed.id),
          "name": .string(name),
        ])
      ])
    ) { _ in "" }
    options.console.talk(
      "\(Columns.printable(renamed.name)) is called \(Columns.printable(name)) from now on.")
    if let notice = SharedNames.notice(name, renamed.fingerprint, among: devices) {
      options.console.talk(notice)
    }
  }
}
