import ArgumentParser
import Kith
import KithTerminal

struct CarrierRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Use a carrier no longer.",
    discussion: """
      The account's other devices stop as well, unless the carrier is this device's own. The objects \
      there stay: delete the directory kith1 yourself, once no device needs it. Asks first.
      """)

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let console = options.console
    let location = try await options.withNode(ofAccount: true) { node in
      let settings = try await node.carriers().find(meant.carrier)
      let whose = settings.isShared ? "on all devices of the account" : "on this device"
      try Confirmation.demand(
        "Use \(Columns.printable(settings.location)) no longer, \(whose)?", unless: yes, console)
      try await node.removeCarrier(settings)
      return settings.location
    }
    try options.print(.versioned(["carrier": .string(location)]))
    console.talk("Removed. The objects there stay until you delete them.")
  }
}
