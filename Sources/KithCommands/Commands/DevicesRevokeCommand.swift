import ArgumentParser
import Kith
import KithTerminal

struct DevicesRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Remove a device from the account, for ever.",
    discussion: """
      For a lost, stolen or given away device. It is out for ever: the others ignore what it \
      writes from now on, and it gets nothing new. Its earlier writes stay, and it keeps what it \
      has read. To admit it again: kith account leave there, then kith join.

      Devices that it enrolled stay, unless you answer otherwise or give --keep or --keep-none.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(
    help: "Its name, fingerprint, or the first digits of its id.", completion: .devices)
  var device: String

  @Option(
    help: ArgumentHelp(
      "An enrolled device that stays; those not named go. May be repeated.",
      valueName: "device"),
    completion: .devices)
  var keep: [String] = []

  @Flag(help: "All that it enrolled stay.")
  var keepAll = false

  @Flag(help: "None that it enrolled stays.")
  var keepNone = false

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  func validate() throws {
    guard [!keep.isEmpty, keepAll, keepNone].count(where: { $0 }) <= 1 else {
      throw ValidationError("Give one of --keep, --keep-all and --keep-none.")
    }
  }

  func run() async throws {
    _ = try options.accountDirectory()
    // Membership only: the device to be revoked may have filled the account's stores.
    let plan = try await options.withNode(readsMembershipOnly: true) { node in
      let plan = try await makePlan(node)
      for line in plan.lines { options.console.talk(line) }
      try Confirmation.demand("This cannot be undone. Do it?", unless: yes, options.console)
      try await node.revoke(plan.device.id, keeping: Set(plan.staying.map(\.id)))
      return plan
    }
    try options.print(
      plan.document, after: "\(Columns.printable(plan.device.name, limit: 64)) is revoked")
    options.console.talk(
      "\(Columns.printable(plan.device.name)) is revoked. The other devices learn it as they are "
        + "met.")
    if !plan.carriers.isEmpty {
      options.console.talk(plan.carrierNotice)
    }
  }

  private func makePlan(_ node: any NodeAccess) async throws -> RevocationPlan {
    let status = try await node.status()
    let device = try status.devices.find(self.device)
    guard !device.isThisDevice else {
      throw CommandFailure(
        .refused, "this is the device itself; revoke it on another device of the account")
    }
    try Confirmation.demandPerson(unless: yes)
    let ids = Set(try await node.dependents(of: device.id))
    let dependents = status.devices.filter { ids.contains($0.id) && !$0.isThisDevice }
    let staying =
      if keepNone {
        [NodeStatus.Device]()
      } else if !keep.isEmpty {
        try keep.map(dependents.find)
      } else if keepAll || yes || dependents.isEmpty {
        dependents
      } else {
        try askWhoStays(device, dependents)
      }
    return RevocationPlan(
      device: device, staying: staying, going: dependents.filter { !staying.contains($0) },
      carriers: status.carriers.filter { $0.kind != "folder" }.map(\.location))
  }

  private func askWhoStays(
    _ device: NodeStatus.Device, _ dependents: [NodeStatus.Device]
  ) throws -> [NodeStatus.Device] {
    let console = options.console
    console.talk("\(Columns.printable(device.name)) enrolled:")
    for dependent in dependents {
      console.talk("  \(Columns.printable(dependent.name))  \(dependent.fingerprint)")
    }
    let question = "Which of them stay? [all, none, or names apart by commas; Enter: all] "
    guard let line = Confirmation.answer(to: question, console) else {
      throw CommandFailure(.refused, "nothing was done")
    }
    let names = line.split(separator: ",").map { $0.trimmed }
      .filter { !$0.isEmpty }
    switch names {
    case [], ["all"]: return dependents
    case ["none"]: return []
    default: return try names.map(dependents.find)
    }
  }
}

struct RevocationPlan {
  var device: NodeStatus.Device
  /// Devices that the revoked one enrolled and that stay.
  var staying: [NodeStatus.Device]
  /// Devices that are revoked with it.
  var going: [NodeStatus.Device]
  /// The locations of carriers with credentials.
  var carriers: [String]

  var lines: [String] {
    func names(_ devices: [NodeStatus.Device]) -> String {
      devices.map { Columns.printable($0.name, limit: 64) }.joined(separator: ", ")
    }
    var lines = [
      "\(names([device]))  \(device.fingerprint)  will be removed from the account for ever: the "
        + "others ignore what it writes, and it gets nothing new."
    ]
    if !going.isEmpty { lines.append("With it go, as it enrolled them: \(names(going)).") }
    if !staying.isEmpty { lines.append("Though it enrolled them, these stay: \(names(staying)).") }
    return lines
  }

  /// About what the revoked device may still do on carriers.
  var carrierNotice: String {
    let names = carriers.map { Columns.printable($0) }.joined(separator: ", ")
    return
      "It may still know how to sign in to \(names): it reads nothing there, but can delete. "
      + "Change the password there, then: kith carrier password"
  }

  var document: Document {
    .versioned([
      "kept": .list(staying.map(\.document)), "revoked": .list(([device] + going).map(\.document)),
    ])
  }
}
