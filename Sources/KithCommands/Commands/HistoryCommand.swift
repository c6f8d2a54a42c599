import ArgumentParser
import Kith
import KithTerminal

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

struct UndoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Make a key show again what it showed before.",
    discussion: """
      Writes the key's newest value of `kith history`, or removes the key if it was missing then. \
      The other devices get the write as any other. A second undo takes back the first. Status 2 if \
      no such value is kept.
      """)

  @Option(
    help: ArgumentHelp("The value of this number in kith history.", valueName: "number"))
  var to: UInt64?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The key.", completion: .pastKeys)
  var key: String

  func run() async throws {
    let (name, past) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      return (name, try await node.undo(key, to: to, in: name))
    }
    guard let past else {
      let value = to.map { "past value \($0)" } ?? "past value"
      throw CommandFailure(
        .notFound,
        "nothing to undo: no \(value) of \"\(Columns.printable(key, limit: 80))\" is kept in the store "
          + "\"\(Columns.printable(name))\"; see: kith history")
    }
    let document = Document.versioned([
      "key": .string(past.key.text), "number": .int(past.number),
      "type": past.value.map { .string($0.typeName) }, "value": past.value.map { .value($0) },
    ])
    try options.print(document) { style in
      let key = style(.strong, Columns.printable(past.key.text))
      guard let value = past.value else { return "\(key) \(style(.warning, "removed"))" }
      return "\(key) = \(Columns.printable(ValueText.text(value)))"
    }
  }
}
