import ArgumentParser
import Kith
import KithTerminal

struct WatchCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "watch",
    abstract: "Print changes as they happen, until interrupted.",
    discussion: """
      One line a key; with --json one line a change (NDJSON), with all its keys. Needs a running \
      node.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Argument(help: "Only these keys. Default: all.")
  var keys: [String] = []

  func run() async throws {
    let console = options.console
    let style = Style.output
    let store = try store.identifier.rawValue
    let (isJSON, wanted) = (options.json, Set(keys.map { KeyValueStore.Key($0) }))
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
