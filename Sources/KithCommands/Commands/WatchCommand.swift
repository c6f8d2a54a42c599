import ArgumentParser
import Kith
import KithTerminal

/// `kith watch`.
struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print changes as they happen, until interrupted.",
    discussion: """
      For people a line a key. With --json a line a change (NDJSON): keys that changed together \
      stand together. Needs a running node.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Argument(help: "Only these keys. Otherwise all.")
  var keys: [String] = []

  func run() async throws {
    let console = options.console
    let style = Style.output
    let store = try store.identifier.rawValue
    let (isJSON, wanted) = (options.json, Set(keys.map { Key($0) }))
    try await options.withNode(needsNode: true) { node in
      try await node.watch(store) { _ in
        console.talk("kith: watching; end with Ctrl-C")
      } onChange: { change in
        guard let report = ChangeReport(change, keys: wanted) else { return }
        console.dataOrExit(isJSON ? report.document.text(indented: false) : report.text(style))
      }
    }
    throw CommandFailure(.unreachable, "the node has stopped")
  }
}
