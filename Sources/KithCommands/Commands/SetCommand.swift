import ArgumentParser
import Kith
import KithTerminal

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
    if type == .auto, case .string = value, ["{", "["].contains(text.first),
      (try? ValueJSON.value(text)) != nil
    {
      options.console.talk(
        "\"\(Columns.printable(key, limit: 80))\": kept as a string, because as JSON a number in it would "
          + "be printed otherwise; --type json takes it as JSON.")
    }
    return value
  }
}

extension ValueType: ExpressibleByArgument {}
