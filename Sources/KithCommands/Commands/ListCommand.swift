import ArgumentParser
import Kith
import KithTerminal

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
