import ArgumentParser
import Kith
import KithTerminal

struct CarrierCheckCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Try all four operations on a carrier.",
    discussion: """
      Lists, puts, gets and deletes an object of 4 KiB that no device takes for one of its own. \
      Warns of settings that keep deleted objects. Status 7 if something does not work.
      """)

  @OptionGroup var options: CommonOptions

  @OptionGroup var meant: CarrierArgument

  func run() async throws {
    let (settings, place) = try await options.withNode(ofAccount: true) { node in
      (try await node.carriers().find(meant.carrier), try await options.place(of: node))
    }
    let trial = await CarrierTrial.run(settings, in: place)
    try options.print(trial.document(settings), text: trial.text)
    guard trial.problem == nil else {
      throw CommandFailure(.unhealthy, "the carrier cannot be used")
    }
  }
}
