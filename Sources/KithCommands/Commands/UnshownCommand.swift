import ArgumentParser
import Kith

struct UnshownCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unshown",
    abstract: "Show writes that did not fit: hidden by the quota, or refused.",
    discussion: """
      Hidden writes of all devices stay, and show once they fit. Refused ones are transactions that \
      this device accepted offline, or before it signed in, and that did not fit later, or that \
      wrote keys of the account. They are kept, with their values, until you clear them with --take.
      """)

  @Flag(help: "Clear the refused ones once printed.")
  var take = false

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    // Print before removing, so that a failed print loses none.
    try await options.withNode(reads: !take) { node in
      let identifier = try await store.existing(at: node)
      let report = UnshownReport(
        store: identifier, hidden: try await node.hiddenEntries(in: identifier),
        refusals: try await node.refusals(in: identifier, takingThrough: nil),
        status: try await node.status())
      try options.print(report.document) { report.isEmpty ? "" : report.text($0) }
      if report.isEmpty && !options.json { options.console.talk("Nothing is hidden or refused.") }
      if take, let last = report.refusals.last {
        _ = try await node.refusals(in: identifier, takingThrough: last.number)
      }
    }
  }
}
