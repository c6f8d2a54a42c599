import ArgumentParser
import Foundation
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
