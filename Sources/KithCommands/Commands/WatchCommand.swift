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

      --exec prints nothing itself. It runs a command in /bin/sh for each change, one after the \
      other, with the line of --json as standard input. If the command fails, it says so and goes \
      on with the next change.

        kith watch theme --exec 'apply-theme "$(kith get theme)"'
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Run this for each change, which it reads as JSON.", valueName: "command"))
  var exec: String?

  @Argument(help: "Only these keys. Default: all.", completion: .keys)
  var keys: [String] = []

  func run() async throws {
    let console = options.console
    let style = Style.output
    let store = try store.identifier.rawValue
    let command = exec.map(ChangeCommand.init)
    let (isJSON, wanted) = (options.json, Set(keys.map { KeyValueStore.Key($0) }))
    try await options.withNode(needsNode: true) { node in
      try await node.watch(store) { _ in
        console.talk("kith: watching; end with Ctrl-C")
      } onChange: { change in
        guard let report = ChangeReport(change, keys: wanted) else { return }
        guard isJSON || command != nil else { return console.dataOrExit(report.text(style)) }
        let line = report.document.text(indented: false)
        if let command { command.runOrExit(line, console) } else { console.dataOrExit(line) }
      }
    }
    throw CommandFailure(.unreachable, "the node has stopped")
  }
}
