import ArgumentParser
import Foundation
import Kith
import KithTerminal

/// `kith get`.
struct GetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Print a key's value.",
    discussion: """
      Prints strings without quotes, dates in ISO 8601, data in base64 and all else as JSON; \
      with --json the type can always be told. Status 2 if the key is missing. On a terminal, \
      characters that it would obey are shown by their numbers, and lines after the first are \
      indented; elsewhere, and with --raw, a value is printed as it is.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Flag(help: "Print data as its bytes, strings as they are, and nothing after them.")
  var raw = false

  @Argument(help: "The key.")
  var key: String

  func run() async throws {
    let (name, found) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      try await options.warnIfLacking(name, at: node)
      return (name, try await node.value(forKey: key, in: name))
    }
    guard let value = found else {
      let place = try options.isSignedOut ? " of this host, where nobody is signed in" : ""
      throw CommandFailure(
        .notFound,
        "\"\(Columns.printable(key, limit: 80))\" is missing in the store "
          + "\"\(Columns.printable(name))\"\(place)")
    }
    if options.json {
      let document = Document.versioned([
        "key": .string(key), "type": .string(value.typeName), "value": .value(value),
      ])
      try options.console.data(document.text())
    } else if raw, case .data(let data) = value {
      try options.console.rawData(data)
    } else if raw {
      try options.console.rawData(Data(ValueText.text(value).utf8))
    } else {
      let text = ValueText.text(value)
      try options.console.data(Terminal.hasOutput ? Columns.readable(text) : text)
    }
  }
}
