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
    if limit > 0, report.values.isEmpty, !options.json {
      options.console.talk("No past value is kept.")
    }
  }
}

struct UndoCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Make a key show again what it showed before.",
    discussion: """
      Writes the key's newest value of `kith history`, or removes the key if it was missing then. \
      With --transaction, all keys whose values ended together. The other devices get the write as \
      any other. A second undo of the key takes back the first. Status 2 if no such value is kept.
      """)

  @Option(
    help: ArgumentHelp("The value of this number in kith history.", valueName: "number"))
  var to: UInt64?

  @Option(
    help: ArgumentHelp(
      "Instead of a key: all values that ended with the value of this number.", valueName: "number")
  )
  var transaction: UInt64?

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The key.", completion: .pastKeys)
  var key: String?

  func validate() throws {
    guard (key == nil) != (transaction == nil), key != nil || to == nil else {
      throw ValidationError("Give a key, or --transaction.")
    }
  }

  func run() async throws {
    let (name, past) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      if let key { return (name, try await node.undo(.key(key, to: to), in: name)) }
      // Any number of the transaction names it.
      let values = try await node.history(of: nil, in: name, limit: .max)
      guard let named = values.first(where: { $0.number == transaction }) else {
        return (name, [])
      }
      return (name, try await node.undo(.transaction(named.transaction), in: name))
    }
    guard !past.isEmpty else {
      let number = (to ?? transaction).map { " \($0)" } ?? ""
      let owner = key.map { " of \"\(Columns.printable($0, limit: 80))\"" } ?? ""
      throw CommandFailure(
        .notFound,
        "nothing to undo: no past value\(number)\(owner) is kept in the store "
          + "\"\(Columns.printable(name))\"; see: kith history")
    }
    let documents = past.map(Self.document)
    let document: [String: Document?] =
      key == nil ? ["values": .list(documents.map { .object($0) })] : documents[0]
    try options.print(Document.versioned(document)) { style in
      past.map { past in
        let key = style(.strong, Columns.printable(past.key.text))
        guard let value = past.value else { return "\(key) \(style(.warning, "removed"))" }
        return "\(key) = \(ValueText.shown(value))"
      }.joined(separator: "\n")
    }
  }

  private static func document(_ past: KeyValueStore.PastValue) -> [String: Document?] {
    [
      "key": .string(past.key.text), "number": .int(past.number),
      "type": past.value.map { .string($0.typeName) }, "value": past.value.map { .value($0) },
    ]
  }
}
