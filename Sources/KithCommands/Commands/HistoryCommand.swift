import ArgumentParser
import Kith

struct HistoryCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Show what keys showed before on this device.",
    discussion: """
      Newest first, with the time and the device that ended each value. Other devices may have \
      shown others. Values are kept for 30 days, at most 100 of a key, and as many bytes as the \
      store may show. `kith run --no-history` deletes them, and keeps none.
      """)

  @Option(
    parsing: .unconditional, help: ArgumentHelp("The most values.", valueName: "number"))
  var limit = 20

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The key. Default: all.", completion: .pastKeys)
  var key: String?

  func validate() throws {
    guard limit >= 0 else { throw ValidationError("--limit is a number, 0 or more.") }
  }

  func run() async throws {
    let report = try await options.withNode(reads: true) { node in
      let name = try await store.existing(at: node)
      return HistoryReport(
        store: name, values: try await node.history(of: key, in: name, limit: limit),
        status: try await node.status())
    }
    try options.print(report.document) { report.values.isEmpty ? "" : report.text($0) }
    if report.values.isEmpty && !options.json { options.console.talk("No past value is kept.") }
  }
}
