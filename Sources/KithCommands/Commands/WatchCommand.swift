import ArgumentParser
import Dispatch
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
      other, with the line of --json as standard input. Changes during a command become one, with \
      the newest value of each key. If the command fails, it says so and goes on.

        kith watch theme --exec 'apply-theme "$(kith get theme)"'
      """)

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Run this for each change, which it reads as JSON.", valueName: "command"))
  var exec: String?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "Only these keys. Default: all.", completion: .keys)
  var keys: [String] = []

  func run() async throws {
    let console = options.console
    let style = Style.output
    let store = try store.identifier.rawValue
    let command = exec.map(ChangeCommand.init)
    let output = DispatchQueue(label: "kith watch output")
    let isJSON = options.json || command != nil
    let wanted = Set(keys.map { KeyValueStore.Key($0) })
    try await options.withNode(needsNode: true) { node in
      try await node.watch(store, joins: command != nil) { _ in
        console.talk("kith: watching; end with Ctrl-C")
      } onChange: { change in
        guard let report = ChangeReport(change, keys: wanted) else { return }
        let line = isJSON ? report.document.text(indented: false) : report.text(style)
        await output.run {
          if let command { command.runOrExit(line, console) } else { console.dataOrExit(line) }
        }
      }
    }
    throw CommandFailure(.unreachable, "the node has stopped")
  }
}
