import ArgumentParser
import Kith
import KithTerminal

/// `kith devices revoke`.
struct DevicesRevokeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke",
    abstract: "Take a device out of the account, for ever.",
    discussion: """
      For a device that was lost, stolen or given away: nothing that it signs counts any more, and \
      it reads nothing that is written from now on. What it wrote stays. What it has read it keeps, \
      and its id never comes back; to take it in again, join in a new directory.

      Of the devices that it enrolled all stay, unless the question is answered otherwise, or \
      --keep names those that stay, or --keep-none is given.
      """)

  @OptionGroup var options: CommonOptions

  @Argument(help: "The device's name, its fingerprint, or the first digits of its id.")
  var device: String

  @Option(
    help: ArgumentHelp(
      "A device that it enrolled and that stays, while those not named go; may be repeated.",
      valueName: "device"))
  var keep: [String] = []

  @Flag(help: "All devices that it enrolled stay.")
  var keepAll = false

  @Flag(help: "No device that it enrolled stays.")
  var keepNone = false

  @Flag(name: [.short, .long], help: "Do it without asking.")
  var yes = false

  func validate() throws {
    guard [!keep.isEmpty, keepAll, keepNone].count(where: { $0 }) <= 1 else {
      throw ValidationError("Give one of --keep, --keep-all and --keep-none.")
    }
  }

  func run() async throws {
    _ = try options.accountDirectory()
    guard yes || Terminal.hasInput else {
      throw CommandFailure(
        .refused, "nobody can answer here, as standard input is no terminal; pass --yes")
    }
    // A member may have filled the stores of the account that it is to be removed from.
    let plan = try await options.withNode(readsMembershipOnly: true) { node in
      let plan = try makePlan(try await node.deviceReports())
      for line in plan.lines { options.console.talk(line) }
      guard yes || Confirmation.isGiven("This cannot be undone. Do it?", options.console) else {
        throw CommandFailure(.refused, "nothing was done")
      }
      try await node.revoke(
        plan.device.deviceID, keeping: Set(plan.staying.map { try $0.deviceID }))
      return plan
    }
    try options.print(plan.document) { _ in "" }
    options.console.talk(
      "\(Columns.printable(plan.device.name)) is no device of the account any more. The others learn "
        + "it as they are met.")
  }

  /// Makes the plan from options or questions.
  private func makePlan(_ devices: [DeviceReport]) throws -> RevocationPlan {
    let device = try DeviceReference(self.device).find(in: devices)
    guard !device.isThisDevice else {
      throw CommandFailure(
        .refused, "this is the device itself; take it out on another device of the account")
    }
    let dependents = devices.filter { device.dependents.contains($0.id) && !$0.isThisDevice }
    if keepNone { return RevocationPlan(device: device, staying: [], going: dependents) }
    var named = keep
    if keep.isEmpty, !keepAll, !yes, !dependents.isEmpty {
      named = try askWhoStays(device, dependents)
      if named == ["none"] {
        return RevocationPlan(device: device, staying: [], going: dependents)
      }
    }
    guard !named.isEmpty else {
      return RevocationPlan(device: device, staying: dependents, going: [])
    }
    let staying = try named.map { try DeviceReference($0).find(in: dependents) }
    return RevocationPlan(
      device: device, staying: staying, going: dependents.filter { !staying.contains($0) })
  }

  /// Asks which devices stay; an empty answer means all.
  private func askWhoStays(
    _ device: DeviceReport, _ dependents: [DeviceReport]
  ) throws -> [String] {
    let console = options.console
    console.talk("\(Columns.printable(device.name)) enrolled:")
    for dependent in dependents {
      console.talk("  \(Columns.printable(dependent.name))  \(dependent.fingerprint)")
    }
    let question = "Which of them stay? [all, none, or names apart by commas; Enter: all] "
    guard let line = Confirmation.answer(to: question, console) else {
      throw CommandFailure(.refused, "nothing was done")
    }
    let names = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
      .filter { !$0.isEmpty }
    return names == ["all"] ? [] : names
  }
}

/// The effects of a revocation.
struct RevocationPlan: Equatable, Sendable {
  /// The revoked device.
  var device: DeviceReport
  /// The devices that it enrolled and that stay.
  var staying: [DeviceReport]
  /// The devices that are revoked with it.
  var going: [DeviceReport]

  /// The planned effects, for people.
  var lines: [String] {
    func names(_ devices: [DeviceReport]) -> String {
      devices.map { Columns.printable($0.name, limit: 64) }.joined(separator: ", ")
    }
    var lines = [
      "\(names([device]))  \(device.fingerprint)  will be taken out of the account: nothing that it "
        + "signs will count any more, and it will read nothing that is written from then on."
    ]
    if !going.isEmpty { lines.append("With it go, as it enrolled them: \(names(going)).") }
    if !staying.isEmpty { lines.append("Though it enrolled them, these stay: \(names(staying)).") }
    return lines
  }

  /// The completed effects, for programs.
  var document: Document {
    func list(_ devices: [DeviceReport]) -> Document {
      .list(
        devices.map {
          .object([
            "fingerprint": .string($0.fingerprint), "id": .string($0.id), "name": .string($0.name),
          ])
        })
    }
    return .versioned(["kept": list(staying), "revoked": list([device] + going)])
  }
}
