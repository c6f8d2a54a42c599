import ArgumentParser
import Kith
import KithCore
import KithTerminal

struct StoresCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "stores",
    abstract: "List the account's stores, or empty one.",
    subcommands: [StoresListCommand.self, StoresRemoveCommand.self],
    defaultSubcommand: StoresListCommand.self)
}

struct StoresListCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the account's stores that hold something.",
    discussion: """
      ON: how many devices are known to have all that this one wrote.
      """)

  @Flag(help: "Also empty stores.")
  var all = false

  @OptionGroup var options: CommonOptions

  func run() async throws {
    let status = try await options.withNode(reads: true) { try await $0.status() }
    let report = StoresReport(status: status, showsEmpty: all)
    try options.print(report.document, text: report.text)
    if !options.json, report.shown.isEmpty { options.console.talk("No store holds anything.") }
  }
}

struct StoresRemoveCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm",
    abstract: "Remove all keys of a store, on all devices.",
    discussion: """
      Removes all keys that this device knows, also of hidden values, as one transaction. The name \
      stays: no device can forget it. An empty store takes next to nothing, and is listed only \
      with --all. A program that writes to the store fills it again. Asks first.
      """)

  @Flag(name: [.short, .long], help: "Do not ask.")
  var yes = false

  @OptionGroup var options: CommonOptions

  @Argument(help: ArgumentHelp("The store.", valueName: "identifier"), completion: .stores)
  var name: String

  func validate() throws {
    guard !name.isEmpty else { throw ValidationError("The store's name is empty.") }
  }

  func run() async throws {
    let console = options.console
    let removed = try await options.withNode { node in
      guard
        try await node.status().stores.contains(where: { $0.identifier == StoreIdentifier(name) })
      else {
        throw CommandFailure(
          .notFound,
          "there is no store \"\(Columns.printable(name, limit: 80))\" here; see: kith stores --all"
        )
      }
      let shown = try await node.shown(in: name)
      options.warn(ifLacking: shown.isLacking, name)
      // Hidden values would show in the space of the removed ones.
      let hidden = try await node.hiddenEntries(in: name).map(\.key)
      let keys = Set(shown.values.keys).union(hidden).sorted().map(\.text)
      guard !keys.isEmpty else { return keys }
      try Confirmation.demand(
        "Remove \(Format.count(keys.count, "key")), all of \"\(Columns.printable(name))\", on all devices?",
        unless: yes, console)
      try await node.write(keys.map { ($0, nil) }, in: name)
      return keys
    }
    try options.print(
      .versioned(["removed": .strings(removed), "store": .string(name)]))
    console.talk(
      removed.isEmpty ? "The store is empty." : "Removed \(Format.count(removed.count, "key")).")
  }
}

struct UnshownCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unshown",
    abstract: "Show writes that did not fit: hidden by the quota, or refused.",
    discussion: """
      Hidden writes of all devices stay, and show once they fit. Refused ones are transactions that \
      this device accepted offline, or before it signed in, and that did not fit later, or that \
      wrote keys of the account. The newest are kept, with their values, until you clear them with \
      --take.
      """)

  @Flag(help: "Clear the refused ones once printed.")
  var take = false

  @OptionGroup var store: StoreOptions
  @OptionGroup var options: CommonOptions

  func run() async throws {
    // Print before removing, so that a failed print loses none.
    try await options.withNode(reads: !take) { node in
      let identifier = try await store.existing(at: node)
      let report = UnshownReport(
        store: identifier, hidden: try await node.hiddenEntries(in: identifier),
        refusals: try await node.refusals(in: identifier, takingThrough: nil),
        status: try await node.status())
      try options.print(report.document) { report.isEmpty ? "" : report.text($0) }
      if report.isEmpty && !options.json { options.console.talk("Nothing is hidden or refused.") }
      if take, let last = report.refusals.last {
        _ = try await node.refusals(in: identifier, takingThrough: last.number)
      }
    }
  }
}
