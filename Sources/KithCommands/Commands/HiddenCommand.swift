import ArgumentParser
import Kith

struct HiddenCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hidden",
    abstract: "Show newest writes that the quota hides, and their devices.",
    discussion: "They stay, and show once they fit.")

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  func run() async throws {
    let identifier = try store.identifier.rawValue
    let (hidden, status) = try await options.withNode { node in
      let hidden = try await node.hiddenEntries(in: store.existing(at: node))
      return (hidden, try await node.report())
    }
    let report = HiddenReport(store: identifier, entries: hidden, status: status)
    try options.print(report.document) { hidden.isEmpty ? "" : report.text($0) }
    if hidden.isEmpty && !options.json { options.console.talk("Nothing is hidden.") }
  }
}
