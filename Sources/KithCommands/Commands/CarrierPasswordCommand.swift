import ArgumentParser
import Kith
import KithCarriers
import KithCore
import KithTerminal

struct CarrierPasswordCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "password",
    abstract: "Give a carrier new credentials.",
    discussion: """
      If the carrier is the account's, its other devices learn them, except those that can be \
      reached only through this carrier: there, run this command again. Change the password at the storage first, above all \
      after a device was revoked: it may still know the old one.
      """)

  @OptionGroup var credentials: CarrierCredentialsOptions

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let location = try await options.withNode(ofAccount: true, writes: true) { node in
      var settings = try await node.carriers().find(meant.carrier)
      guard let kind = CarrierAddress.Kind(rawValue: settings.kind), kind != .folder else {
        throw CommandFailure(.refused, "this carrier needs no credentials")
      }
      let address: CarrierAddress
      do throws(CarrierFailure) {
        address = try CarrierAddress(kind, settings.location)
      } catch {
        throw CommandFailure(.refused, error.message)
      }
      settings.credentials = try credentials.text(for: address, options.console)
      let trial = await CarrierTrial.run(settings, in: try await options.place(of: node))
      if let problem = trial.problem {
        throw CommandFailure(.unreachable, "nothing has changed: \(problem)")
      }
      try await node.keepCarrier(settings)
      return settings.location
    }
    try options.print(.versioned(["carrier": .string(location)]))
    options.console.talk("The new credentials of \(Columns.printable(location)) are used now.")
  }
}
