import ArgumentParser
import FoundationEssentials
import Glibc
import Kith
import KithTerminal
import KithValues

struct SetCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "set",
    abstract: "Set the values of one or several keys.",
    discussion: """
      true is a bool, 42 an integer, 0.5 a double, {"a": 1} JSON, anything else a string, unless \
      --type says otherwise. A number that `kith get` would print otherwise stays a string: 3.10, \
      1e3, 007, integers beyond 64 bits; so does JSON with such a number. -- ends the options. Several pairs are one transaction: all \
      are set or none. Returns when the write survives a crash.

      --if-value and --if-missing check and write in one step, also if other programs of this \
      device write: status 8, and nothing is written, if the check fails. Another device may write \
      at the same time; then the later write wins.

        kith set theme dark
        kith set window.width 1280 window.height 800
        kith set --type double ratio 1.10
        kith set notes - < notes.txt
        kith set --if-value 41 count 42
        kith set dash '"-"'              the text - itself, as JSON
        kith set -- -key --value
      """)

  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The values' type.", valueName: "type"))
  var type: ValueType = .auto

  @Option(
    parsing: .unconditional,
    help: ArgumentHelp(
      "Only if the key shows this value; --type counts too.", valueName: "old"))
  var ifValue: String?

  @Flag(help: "Only if all the keys are missing.")
  var ifMissing = false

  @OptionGroup var store: WrittenStoreOptions
  @OptionGroup var options: CommonOptions

  @Argument(
    // Accepts values such as -5; `validate()` refuses keys that look like mistyped options.
    parsing: .allUnrecognized,
    help: ArgumentHelp(
      "Keys, each with its value; the value - reads standard input.",
      valueName: "pairs"),
    completion: .keys)
  var arguments: [String]

  /// The parser leaves in the `--` that ends the options.
  var pairs: [String] {
    guard let end = arguments.firstIndex(of: "--") else { return arguments }
    return Array(arguments[..<end] + arguments[(end + 1)...])
  }

  func validate() throws {
    guard pairs.count.isMultiple(of: 2), !pairs.isEmpty else {
      throw ValidationError(
        "Give a value for every key: kith set KEY VALUE [KEY VALUE]..."
          + (pairs.contains { $0.contains("=") } ? " (without =)" : ""))
    }
    let all = stride(from: 0, to: pairs.count, by: 2).map { pairs[$0] }
    if let twice = Dictionary(grouping: all, by: { KeyValueStore.Key($0) }).filter({
      $0.value.count > 1
    })
    .keys.min() {
      throw ValidationError(
        "The key \"\(Columns.printable(twice.text, limit: 80))\" is given twice.")
    }
    let checked = arguments.prefix { $0 != "--" }
    let keys = stride(from: 0, to: checked.count, by: 2).map { checked[$0] }
    if let option = keys.first(where: { $0.hasPrefix("--") }) {
      throw ValidationError("Unknown option '\(option)'.")
    }
    guard stride(from: 1, to: pairs.count, by: 2).count(where: { pairs[$0] == "-" }) <= 1 else {
      throw ValidationError("Only one value can come from standard input.")
    }
    guard ifValue == nil || pairs.count == 2 && !ifMissing else {
      throw ValidationError("--if-value takes one key, and no --if-missing.")
    }
  }

  func run() async throws {
    let writes: [(key: String, value: PropertyListValue?)] =
      try stride(from: 0, to: pairs.count, by: 2).map {
        (pairs[$0], try value(pairs[$0 + 1], of: pairs[$0]))
      }
    let old = try ifValue.map { try ValueText.parse($0, as: type) }
    let expected: [(key: String, value: PropertyListValue?)] =
      ifMissing || old != nil ? writes.map { ($0.key, old) } : []
    try await options.withNode(writes: true) { node in
      let name = try await store.writable(at: node, options.console)
      try await node.write(writes, in: name, ifShown: expected)
    }
    try options.print(.versioned(["set": .strings(writes.map(\.key))]))
  }

  private func value(_ argument: String, of key: String) throws -> PropertyListValue {
    let isInput = argument == "-"
    switch type {
    case .data where isInput: return .data(try InputText.data(of: "-"))
    case .plist where isInput: return try PropertyListReader.value(try InputText.data(of: "-"))
    default: break
    }
    let text = isInput ? try InputText.text(of: "-") : argument
    let value = try ValueText.parse(text, as: type)
    if type == .auto, let reason = ValueText.reasonAgainstJSON(text, value) {
      options.console.talk(
        "\"\(Columns.printable(key, limit: 80))\": kept as a string, because \(Columns.sentence(reason))"
      )
    }
    return value
  }
}

extension ValueType: ExpressibleByArgument {}

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
      for key in keys.uniqueKeys {
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

/// The command of `kith watch --exec`, which the shell runs for each change.
struct ChangeCommand: Sendable {
  let text: String

  /// Blocks until the command has ended. If it fails, says so; if it cannot be started, exits the
  /// process.
  func runOrExit(_ line: String, _ console: Console) {
    do throws(CommandFailure) {
      let status = try run(line + "\n")
      if status != 0 { console.warn("the command ended with status \(status)") }
    } catch {
      console.warn(error.description)
      exit(error.status.rawValue)
    }
  }

  /// Returns the exit status, or 128 and the signal, as a shell does.
  private func run(_ input: String) throws(CommandFailure) -> Int32 {
    let (reading, writing) = try HostProgram.pipe()
    // The command may end without reading: then writing fails.
    signal(SIGPIPE, SIG_IGN)
    let started = Result { () throws(CommandFailure) in
      try HostProgram(["/bin/sh", "-c", text], input: reading)
    }
    close(reading)
    var rest = Array(input.utf8)[...]
    while case .success = started, !rest.isEmpty {
      let count = rest.withUnsafeBytes { write(writing, $0.baseAddress, $0.count) }
      if count < 0 && errno != EINTR { break }
      rest = rest.dropFirst(max(0, count))
    }
    close(writing)
    return try started.get().wait()
  }
}
