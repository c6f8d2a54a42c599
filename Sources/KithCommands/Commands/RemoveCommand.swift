import ArgumentParser
import Kith
import KithTerminal

struct RemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Remove keys.",
    discussion: """
      Several keys are one transaction. If keys are missing, it names them, removes the others, \
      and ends with status 2.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Flag(name: [.short, .long], help: "Ignore missing keys.")
  var force = false

  @Argument(help: "The keys.")
  var keys: [String]

  func run() async throws {
    let (name, removed, missing) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      var present: [String] = []
      var missing: [String] = []
      for key in keys {
        if try await node.value(forKey: key, in: name) == nil {
          missing.append(key)
        } else {
          present.append(key)
        }
      }
      if !present.isEmpty {
        try await node.write(present.map { ($0, nil) }, in: name)
      }
      return (name, present, missing)
    }
    if options.json {
      let document = Document.versioned([
        "missing": .strings(missing), "removed": .strings(removed),
      ])
      try options.console.data(document.text())
    }
    guard force || missing.isEmpty else {
      let names = missing.map { "\"\(Columns.printable($0, limit: 80))\"" }.joined(separator: ", ")
      throw CommandFailure(
        .notFound, "missing in the store \"\(Columns.printable(name))\": \(names)")
    }
  }
}
