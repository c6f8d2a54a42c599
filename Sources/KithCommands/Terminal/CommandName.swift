import ArgumentParser
import KithTerminal

enum CommandName {
  /// The most letters inserted or removed between a typed name and a suggested command. A replaced
  /// letter is one removed and one inserted.
  private static let mostChanges = 2

  /// Words that other tools use, by the command after which they stand, with what is meant here.
  private static let synonyms: [String: [String: String]] = [
    "kith": [
      "del": "kith rm", "delete": "kith rm", "remove": "kith rm", "unset": "kith rm",
      "add": "kith set", "put": "kith set", "write": "kith set",
      "show": "kith get", "read": "kith get", "cat": "kith get",
      "list": "kith ls", "keys": "kith ls", "dump": "kith export", "backup": "kith export",
      "load": "kith import", "restore": "kith import",
      "init": "kith account create", "login": "kith account sign-in",
      "signin": "kith account sign-in", "signout": "kith account sign-out",
      "logout": "kith account sign-out", "accounts": "kith account list",
      "pair": "kith invite", "peers": "kith devices", "nodes": "kith devices",
      "ping": "kith devices meet", "connect": "kith devices meet",
      "up": "kith run", "start": "kith run", "serve": "kith run", "daemon": "kith run",
      "down": "systemctl --user stop kith", "stop": "systemctl --user stop kith",
      "restart": "systemctl --user restart kith", "reload": "systemctl --user restart kith",
      "log": "journalctl --user -u kith", "logs": "journalctl --user -u kith",
      "info": "kith status", "version": "kith --version", "wait": "kith sync",
      "repair": "kith doctor --repair", "fix": "kith doctor --repair", "check": "kith doctor",
      "completion": "kith --generate-completion-script bash",
      "completions": "kith --generate-completion-script bash",
      "redo": "kith undo", "revert": "kith undo", "find": "kith ls", "search": "kith ls",
      "-V": "kith --version", "-v": "kith --version",
    ],
    "kith account": [
      "delete": "kith account leave", "remove": "kith account leave", "rm": "kith account leave",
      "join": "kith join", "login": "kith account sign-in", "logout": "kith account sign-out",
      "signin": "kith account sign-in", "signout": "kith account sign-out",
      "new": "kith account create",
    ],
    "kith devices": [
      "add": "kith invite", "delete": "kith devices revoke", "remove": "kith devices revoke",
      "rm": "kith devices revoke", "ls": "kith devices list", "connect": "kith devices meet",
      "ping": "kith devices meet",
    ],
    "kith carrier": [
      "delete": "kith carrier remove", "rm": "kith carrier remove", "ls": "kith carrier list",
      "test": "kith carrier check",
    ],
    "kith stores": [
      "delete": "kith stores rm", "remove": "kith stores rm", "ls": "kith stores list",
      "add": "kith set --store NAME", "create": "kith set --store NAME",
    ],
    "kith service": [
      "start": "kith service install", "enable": "kith service install",
      "stop": "systemctl --user stop kith", "restart": "systemctl --user restart kith",
      "disable": "systemctl --user disable --now kith", "uninstall": "kith service remove",
      "logs": "journalctl --user -u kith",
    ],
  ]

  /// Options of the tool itself.
  private static let ownOptions = [
    "-h", "--help", "-help", "--version", "--generate-completion-script",
  ]

  /// Refuses an unknown command, with a suggestion. The parser would print help with status 0, or
  /// report an excess argument. `arguments` are without the tool's name.
  static func check(
    _ arguments: [String], of root: any ParsableCommand.Type
  ) throws(CommandFailure) {
    if let option = arguments.first, option.hasPrefix("-"), let meant = synonyms["kith"]?[option] {
      throw CommandFailure(.usage, "there is no option '\(option)'; did you mean '\(meant)'?")
    }
    try checkOptions(before: arguments, of: root)
    // The parser would name no near one: the tool's own options are none of a command's.
    if let option = arguments.first, option.hasPrefix("--"), !ownOptions.contains(option),
      let meant = nearest(to: option, among: ownOptions.filter { $0.hasPrefix("--") })
    {
      throw CommandFailure(.usage, "there is no option '\(option)'; did you mean 'kith \(meant)'?")
    }
    var names = arguments.prefix { !$0.hasPrefix("-") }
    if names.first == "help" { names.removeFirst() }
    var (command, path) = (root, "kith")
    for name in names {
      let subcommands = command.configuration.subcommands
      guard !subcommands.isEmpty else { return }
      guard let next = subcommands.first(where: { $0.name == name }) else {
        let meant = meant(by: name, after: path, among: subcommands)
        throw CommandFailure(
          .usage,
          "there is no command '\(path) \(Columns.printable(name, limit: 40))'"
            + (meant.map { "; did you mean \($0)?" } ?? "; see: \(path) --help"))
      }
      (command, path) = (next, path + " " + name)
    }
  }

  /// Refuses an option that stands before the command to which it belongs.
  private static func checkOptions(
    before arguments: [String], of root: any ParsableCommand.Type
  ) throws(CommandFailure) {
    guard let option = arguments.first, option.hasPrefix("-"),
      !ownOptions.contains(where: { option == $0 || option.hasPrefix($0 + "=") }),
      !option.hasPrefix("--experimental"), !option.hasPrefix("---"),
      let index = arguments.firstIndex(where: { argument in
        root.configuration.subcommands.contains { $0.name == argument }
      })
    else { return }
    let moved = arguments[index...] + arguments[..<index]
    throw CommandFailure(
      .usage,
      "options stand after the command: kith "
        + moved.map { Columns.printable($0, limit: 40) }.joined(separator: " "))
  }

  /// The commands that may be meant, in quotes; nil: none is near.
  private static func meant(
    by name: String, after path: String, among subcommands: [any ParsableCommand.Type]
  ) -> String? {
    if let synonym = synonyms[path]?[name.lowercased()] { return "'\(synonym)'" }
    let below = subcommands.flatMap { group in
      group.configuration.subcommands.filter { $0.name == name }
        .map { "'\(path) \(group.name) \($0.name)'" }
    }
    if (1...2).contains(below.count) { return below.joined(separator: " or ") }
    return nearest(to: name, among: subcommands.map { $0.name }).map { "'\(path) \($0)'" }
  }

  /// Options that answer a question before it is asked.
  private static let answers = ["--yes", "--force"]

  /// Takes a suggestion for an option out of the parser's message, unless it is near enough, and
  /// harmless.
  static func checked(_ message: String) -> String {
    // Making the pattern takes a tenth of what `kith --version` does.
    guard message.contains("Unknown option") else { return message }
    let suggestion =
      #/Unknown option '(?<typed>[^']*)'\.(?<rest> Did you mean '(?<meant>[^']*)'\?)/#
    guard let match = message.firstMatch(of: suggestion) else { return message }
    let meant = String(match.meant)
    let isNear = nearest(to: String(match.typed), among: [meant]) != nil
    guard !isNear || answers.contains(meant) else { return message }
    return String(message[..<match.rest.startIndex] + message[match.rest.endIndex...])
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
