import ArgumentParser
import Dispatch
import FoundationEssentials
import Kith
import KithTerminal

struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print a key's value.",
    discussion: """
      Prints strings without quotes, dates in ISO 8601, data in base64, all else as JSON; --json \
      also shows the type. Status 2 if the key or the store is missing, unless --default says what \
      to print. A terminal gets control characters as numbers, and lines after the first indented; \
      others, and --raw, get the value unchanged.
      """)

  @Flag(help: "Print data as bytes, strings unchanged, and nothing after.")
  var raw = false

  @Option(
    name: .customLong("default"), parsing: .unconditional,
    help: ArgumentHelp("Printed, with status 0, if key or store is missing.", valueName: "value"))
  var fallback: String?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The key.", completion: .keys)
  var key: String

  func run() async throws {
    let name = try store.identifier.rawValue
    let found: PropertyListValue? = try await options.withNode(reads: true) { node in
      if fallback != nil, try await !store.isThere(at: node) { return nil }
      _ = try await store.existing(at: node)
      let shown = try await node.shown(key, in: name)
      options.warn(ifLacking: shown.isLacking, name)
      return shown.values[KeyValueStore.Key(key)]
    }
    guard let value = try found ?? fallback.map({ try ValueText.parse($0) }) else {
      throw CommandFailure.missing(key, in: name, isSignedOut: try options.isSignedOut)
    }
    if options.json {
      let document = Document.versioned([
        "isDefault": found == nil ? .bool(true) : nil, "key": .string(key),
        "type": .string(value.typeName), "value": .value(value),
      ])
      return try options.console.data(document.text())
    }
    let text = found.map(ValueText.text) ?? fallback ?? ""
    if raw, case .data(let data)? = found {
      try options.console.rawData(data)
    } else if raw {
      try options.console.rawData(Data(text.utf8))
    } else {
      try options.console.data(Terminal.hasOutput ? Columns.readable(text) : text)
    }
  }
}

struct ListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List keys; with -l, types, sizes and values.")

  @Flag(name: [.customShort("l"), .long], help: "Print types, sizes and values too.")
  var long = false

  @Flag(name: [.customShort("S"), .long], help: "Largest values first.")
  var bySize = false

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "Only keys that begin with this text.", completion: .keys)
  var prefix: String?

  func run() async throws {
    let (name, entries) = try await options.withNode(reads: true) { node in
      let name = try await store.existing(at: node)
      let shown = try await node.shown(in: name)
      options.warn(ifLacking: shown.isLacking, name)
      return (name, shown.values.entries)
    }
    let report = try EntriesReport(
      store: name, entries, prefix: prefix ?? "", isBySize: bySize)
    try options.print(report.document) { style in
      if report.items.isEmpty { return "" }
      return long ? report.table(style) : report.keys
    }
    if !options.json, report.items.isEmpty, let prefix, !entries.isEmpty {
      options.console.talk(
        "No key begins with \"\(Columns.printable(prefix, limit: 80))\"; a prefix is taken as it is, "
          + "without wildcards.")
    }
  }
}

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
    let directory = try Accounts.deviceDirectory(in: options.directoryURL.path)
    let ended = await Result(awaiting: {
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
    })
    guard try Accounts.deviceDirectory(in: options.directoryURL.path) == directory else {
      throw CommandFailure(
        .unreachable,
        "somebody signed in or out here, so the node serves other stores now; watch again")
    }
    try ended.get()
    throw CommandFailure(.unreachable, "the node has stopped")
  }
}
