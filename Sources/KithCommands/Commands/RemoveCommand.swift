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

      --if-value checks and removes in one step, also if other programs of this device write: \
      status 8, and nothing is removed, if the key shows something else.

        kith rm theme size
        kith rm --prefix editor.
        kith rm --if-value laptop owner
      """)

  @Flag(name: [.short, .long], help: "Ignore missing keys.")
  var force = false

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Remove the keys that begin with this.", valueName: "text"),
    completion: .keys)
  var prefix: String?

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("Only if the key shows this value; --type counts too.", valueName: "old"))
  var ifValue: String?

  @Option(
    name: [.short, .long],
    help: ArgumentHelp("The type of --if-value.", valueName: "type"))
  var type: ValueType = .auto

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(help: "The keys.", completion: .keys)
  var keys: [String] = []

  func validate() throws {
    guard keys.isEmpty == (prefix != nil) else {
      throw ValidationError("Give keys, or --prefix.")
    }
    guard ifValue == nil || keys.count == 1 else {
      throw ValidationError("--if-value takes one key.")
    }
    // A script's empty variable would remove the whole store.
    guard prefix != "" else { throw ValidationError("The prefix is empty; all keys begin so.") }
  }

  func run() async throws {
    let old = try ifValue.map { try ValueText.parse($0, as: type) }
    let (name, removed, missing) = try await options.withNode { node in
      let name = try await store.existing(at: node)
      if let prefix { return (name, try await remove(prefix, in: name, at: node), [String]()) }
      if let old {
        try await node.write([(keys[0], nil)], in: name, ifShown: [(keys[0], old)])
        return (name, keys, [])
      }
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
      options.console.talk("Removed \(Format.count(removed.count, "key")).")
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
      "Remove \(Format.count(found.count, "key")) of \"\(Columns.printable(name))\"?",
      unless: yes || !Terminal.hasInput, options.console)
    try await node.write(found.map { ($0, nil) }, in: name)
    return found
  }
}
