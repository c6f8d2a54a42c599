import ArgumentParser
import Kith
import KithTerminal

struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Print the whole store in a canonical form.",
    discussion: """
      A JSON object, one key a line; --json adds a document that names the store. Keys are in the \
      order of their UTF-8 bytes, each value has one form, and nothing names the device: devices \
      that show the same print the same bytes. `kith import` reads both, and what --format dconf prints. Status 1 if a part was \
      damaged here and is missing, until `kith doctor --accept-loss`.
      """)

  @Option(help: "As JSON, or for `dconf load /`.")
  var format = ExportFormat.json

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func validate() throws {
    guard !options.json || format == .json else {
      throw ValidationError("--json and --format dconf exclude each other.")
    }
  }

  func run() async throws {
    let (identifier, entries, forms, isLacking) = try await options.withNode(reads: true) {
      node in
      let name = try await store.existing(at: node)
      let shown = try await node.shown(in: name)
      let forms = format == .dconf ? try await DconfTypes.forms(of: name, at: node) : [:]
      return (name, shown.values.entries, forms, shown.isLacking)
    }
    var leftOut: [(keys: [String], reason: String)] = []
    switch format {
    case .json:
      let document = ExportDocument(store: identifier, entries: entries)
      try options.console.data((options.json ? document.versioned : document.plain).text())
    case .dconf:
      let document = DconfDocument(entries: entries, forms: forms)
      // Values have no such characters, but a key's name may.
      try options.console.data(
        Terminal.hasOutput ? Columns.readable(document.text, indent: "") : document.text)
      warn(guessed: document.guessed)
      leftOut = [
        (document.skipped, "dconf has no such keys"),
        (document.unwritable, "dconf has no such values"),
      ]
    }
    guard !isLacking else {
      throw CommandFailure(
        .failure,
        "the printed copy is not complete: a part of the store was damaged on this disk, and no other "
          + "device has given it back yet; run the node beside one that has it, then export again. If "
          + "none has it: kith doctor --accept-loss")
    }
    let reasons = leftOut.filter { !$0.keys.isEmpty }.map { keys, reason in
      "left out, because \(reason): "
        + keys.map { "\"\(Columns.printable($0))\"" }.joined(separator: ", ")
    }
    guard reasons.isEmpty else {
      throw CommandFailure(.refused, reasons.joined(separator: "; "))
    }
  }
}

extension ExportCommand {
  private static let keysInWarning = 5

  private func warn(guessed: [String]) {
    guard !guessed.isEmpty else { return }
    let keys = guessed.prefix(Self.keysInWarning).map { Columns.printable($0, limit: 80) }
    let rest = guessed.count - keys.count
    options.console.warn(
      "no dump told the dconf types of \(Format.count(guessed.count, "value")), which are written as "
        + "their values' usual ones; a program ignores a value of another type: "
        + keys.joined(separator: ", ") + (rest > 0 ? " and \(Format.count(rest)) more" : ""))
  }
}

enum ExportFormat: String, CaseIterable, ExpressibleByArgument {
  case json
  /// Key files with GVariant's text (``DconfDocument``).
  case dconf
}
