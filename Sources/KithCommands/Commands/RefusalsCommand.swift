import ArgumentParser
import Kith

struct RefusalsCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "refusals",
    abstract: "Show transactions accepted offline that did not fit later.",
    discussion: "They are kept, with their values, until you clear them with --take.")

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Flag(help: "Clear them once printed.")
  var take = false

  func run() async throws {
    let identifier = try store.identifier.rawValue
    // Print before removing, so that a failed print loses none.
    try await options.withNode { node in
      let refusals = try await node.refusals(
        in: store.existing(at: node), takingThrough: nil)
      let report = RefusalsReport(store: identifier, refusals: refusals)
      try options.print(report.document) { refusals.isEmpty ? "" : report.text($0) }
      if refusals.isEmpty && !options.json { options.console.talk("Nothing was refused.") }
      if take, let last = refusals.last {
        _ = try await node.refusals(in: identifier, takingThrough: last.number)
      }
    }
  }
}
