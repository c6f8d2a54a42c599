import ArgumentParser
import KithTerminal

enum CommandName {
  /// The most letters by which a typed name may differ from a suggested command.
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
      let subcommands = command.allSubcommands
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
    let typed = Array(typed.lowercased().prefix(40))
    let best = names.map { (name: $0, changes: changes(from: typed, to: Array($0))) }
      .min { ($0.changes, $0.name) < ($1.changes, $1.name) }
    guard let best, best.changes <= mostChanges, best.changes < typed.count else { return nil }
    return best.name
  }

  /// Counts letters inserted, removed, replaced or swapped with the next one.
  private static func changes(from one: [Character], to other: [Character]) -> Int {
    var rows = [Array(0...other.count)]
    for (i, letter) in one.enumerated() {
      var row = [i + 1]
      for (j, target) in other.enumerated() {
        var least = min(rows[i][j + 1] + 1, row[j] + 1, rows[i][j] + (letter == target ? 0 : 1))
        if i > 0, j > 0, letter == other[j - 1], one[i - 1] == target {
          least = min(least, rows[i - 1][j - 1] + 1)
        }
        row.append(least)
      }
      rows.append(row)
    }
    return rows[one.count][other.count]
  }
}

extension ParsableCommand {
  fileprivate static var name: String { configuration.commandName ?? "" }

  fileprivate static var allSubcommands: [any ParsableCommand.Type] {
    configuration.subcommands + configuration.groupedSubcommands.flatMap(\.subcommands)
  }
}
