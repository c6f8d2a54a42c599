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

      --prefix also is one transaction, of all keys that the store shows. It says how many it \
      removed, and asks first on a terminal.
      """)

  @OptionGroup var options: CommonOptions
  @OptionGroup var store: StoreOptions

  @Flag(name: [.short, .long], help: "Ignore missing keys.")
  var force = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Remove the keys that begin with this.", valueName: "text"),
    completion: .keys)
  var prefix: String?

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @Argument(help: "The keys.", completion: .keys)
  var keys: [String] = []

  func validate() throws {
    guard keys.isEmpty == (prefix != nil) else {
      throw ValidationError("Give keys, or --prefix.")
    }
    // A script's empty variable would remove the whole store.
    guard prefix != "" else { throw ValidationError("The prefix is empty; all keys begin so.") }
  }

  func run() async throws {
    let (name, removed, missing) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      if let prefix { return (name, try await remove(prefix, in: name, at: node), [String]()) }
      var (present, missing): ([String], [String]) = ([], [])
      for key in keys {
        let value = try await node.value(forKey: key, in: name)
        if value == nil { missing.append(key) } else { present.append(key) }
      }
      if !present.isEmpty {
        try await node.write(present.map { ($0, nil) }, in: name)
      }
      return (name, present, missing)
    }
    try options.print(.versioned(["missing": .strings(missing), "removed": .strings(removed)]))
    if let prefix {
      guard force || !removed.isEmpty else {
        throw CommandFailure(
          .notFound,
          "no key in the store \"\(Columns.printable(name))\" begins with "
            + "\"\(Columns.printable(prefix, limit: 80))\"")
      }
      options.console.talk("Removed \(Humane.count(removed.count, "key")).")
    }
    guard force || missing.isEmpty else { throw CommandFailure.missing(missing, in: name) }
  }

  /// Returns the removed keys.
  private func remove(
    _ prefix: String, in name: String, at node: any NodeAccess
  ) async throws -> [String] {
    let found = try await node.values(in: name).entries.map(\.key)
      .filter { $0.utf8.starts(with: prefix.utf8) }
    guard !found.isEmpty else { return [] }
    try Confirmation.demand(
      "Remove \(Humane.count(found.count, "key")) of \"\(Columns.printable(name))\"?",
      unless: yes || !Terminal.hasInput, options.console)
    try await node.write(found.map { ($0, nil) }, in: name)
    return found
  }
}
