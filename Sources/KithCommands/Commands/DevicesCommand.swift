import ArgumentParser
import Kith
import KithCore
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

  func validate() throws {
    guard !device.isEmpty, !name.isEmpty else { throw ValidationError("A name is empty.") }
  }

  func run() async throws {
    let (reference, name) = (device, name)
    let (renamed, devices) = try await options.withNode(ofAccount: true) { node in
      let devices = try await node.status().devices
      let found = try devices.find(reference)
      do {
        try DeviceName.check(name)
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

/// An argument that names another device's address.
struct AddressArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The other device's address.", valueName: "host:port"))
  var address: String

  func validate() throws {
    do throws(KithError) {
      try Node.checkPeers([address])
    } catch {
      throw ValidationError(error.message)
    }
  }
}

struct DevicesMeetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "meet",
    abstract: "Have the running node connect to another device's address.",
    discussion: """
      For a device that is not found on the LAN. Says after some seconds what came of it: status 5 \
      unless a device of the account answered. The node tries the address until it stops. Once it \
      has met a device there it remembers the address, as with `kith run --peer`.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var meant: AddressArgument

  func run() async throws {
    let (met, name) = try await options.withNode(ofAccount: true, needsNode: true) { node in
      let met = try await node.meet(meant.address)
      guard met.outcome == .met else { return (met, "a device of the account") }
      let status = try await node.status()
      let device = met.device ?? status.peers.last { $0.address == met.address }?.device
      return (met, device.map { status.name(of: $0, limit: 64) } ?? "a device of the account")
    }
    try options.print(.versioned(.of(met)))
    guard met.outcome == .met else {
      let reason = met.reason.map { Columns.sentence($0) }
      throw CommandFailure(
        .unreachable,
        (reason ?? "\(met.address) has not answered yet") + (met.advice.map { "; \($0)" } ?? "")
          + ". The node goes on trying; to stop it: \(met.forgetting)")
    }
    options.console.talk("Met \(name) at \(met.address).")
  }
}

struct DevicesAddressesCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "addresses",
    abstract: "List the addresses at which this device calls others, and what came of it.",
    discussion: """
      FROM: named (--peer, kith devices meet), remembered, or heard on the local network. A node \
      calls only some of the remembered addresses while it is connected to enough devices.
      """)

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(ofAccount: true, reads: true) { try await $0.status() }
    let report = AddressesReport(status: status, nowMilliseconds: Moment.now)
    try options.print(report.document, text: report.text)
    if !options.json, status.addresses.isEmpty {
      options.console.talk("No address is known. Name one with: kith devices meet HOST:PORT")
    }
  }
}

struct DevicesForgetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Stop calling an address, and forget it.",
    discussion: """
      On this device alone; a session there goes on. `kith run --peer` names the address again, and \
      another device that remembers it may tell it again.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var meant: AddressArgument

  func run() async throws {
    let address = try Node.addressText(meant.address)
    try await options.withNode(ofAccount: true) { node in
      let known = try await node.status().addresses.filter { $0.address == address }
      guard !known.isEmpty else {
        throw CommandFailure(
          .notFound, "no address \(address) is known here; see: kith devices addresses")
      }
      guard known.contains(where: { $0.source != .heard }) else {
        throw CommandFailure(
          .refused, "\(address) is not remembered: the device is seen there on the local network")
      }
      try await node.forget(address: address)
    }
    try options.print(.versioned(["address": .string(address)]))
    options.console.talk("\(address) is forgotten.")
  }
}
