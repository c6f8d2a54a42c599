import ArgumentParser
import KithTerminal

enum CommandName {
  /// The most letters inserted or removed between a typed name and a suggested command. A replaced
  /// letter is one removed and one inserted.
  private static let mostChanges = 2

  /// Refuses an unknown command, with a suggestion. The parser would print help with status 0, or
  /// report an excess argument. `arguments` are without the tool's name.
  static func check(
    _ arguments: [String], of root: any ParsableCommand.Type
  ) throws(CommandFailure) {
    var names = arguments.prefix { !$0.hasPrefix("-") }
    if names.first == "help" { names.removeFirst() }
    var (command, path) = (root, "kith")
    for name in names {
      let subcommands = command.configuration.subcommands
      guard !subcommands.isEmpty else { return }
      guard let next = subcommands.first(where: { $0.name == name }) else {
        let meant = nearest(to: name, among: subcommands.map { $0.name })
        throw CommandFailure(
          .usage,
          "there is no command '\(path) \(Columns.printable(name, limit: 40))'"
            + (meant.map { "; did you mean '\(path) \($0)'?" } ?? "; see: \(path) --help"))
      }
      (command, path) = (next, path + " " + name)
    }
  }

  /// Nil if all names need too many changes.
  static func nearest(to typed: String, among names: [String]) -> String? {
    let typed = String(typed.lowercased().prefix(40))
    let best = names.map { (name: $0, changes: $0.difference(from: typed).count) }
      .min { ($0.changes, $0.name) < ($1.changes, $1.name) }
    guard let best, best.changes <= mostChanges, best.changes < typed.count else { return nil }
    return best.name
  }
}

extension ParsableCommand {
  fileprivate static var name: String { configuration.commandName ?? "" }
}
