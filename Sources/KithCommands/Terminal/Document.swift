import Kith
import KithTerminal

/// A JSON document of a command: members sorted by their keys' bytes, values as ``ValueJSON``.
/// Unlike a property-list dictionary, it distinguishes keys that Swift calls equal.
indirect enum Document {
  /// A value of a store, or a scalar.
  case value(PropertyListValue)
  case list([Document])
  case members([(key: String, value: Document)])

  /// Rises when a member changes its meaning or is removed.
  static let version = 1

  /// Drops nil members and adds the version.
  static func versioned(_ members: [String: Document?]) -> Document {
    object(members.merging(["version": .int(version)]) { member, _ in member })
  }

  /// Adds the version to the members.
  static func versioned(_ document: Document) -> Document {
    guard case .members(let members) = document else { return document }
    return .members(members + [("version", .int(version))])
  }

  /// `try?` hides no error: the types of a status always have a property-list value.
  static func of(_ value: some Encodable) -> Document {
    func document(_ value: PropertyListValue) -> Document {
      switch value {
      case .array(let elements): .list(elements.map(document))
      case .dictionary(let members): .members(members.map { ($0.key, document($0.value)) })
      default: .value(value)
      }
    }
    return (try? PropertyListValue(encoding: value)).map(document) ?? .members([])
  }

  /// Drops nil members.
  static func object(_ members: [String: Document?]) -> Document {
    .members(members.compactMap { key, value in value.map { (key, $0) } })
  }

  static func int(_ number: Int) -> Document { .value(.integer(Int64(number))) }

  static func int(_ number: UInt64?) -> Document? {
    number.map { .value(.integer(Int64(clamping: $0))) }
  }

  static func string(_ text: String) -> Document { .value(.string(text)) }

  static func string(_ text: String?) -> Document? { text.map { .value(.string($0)) } }

  static func bool(_ isTrue: Bool) -> Document { .value(.bool(isTrue)) }

  static func double(_ number: Double, places: Int = 3) -> Document {
    .value(.double(Double(Humane.decimals(number, places)) ?? number))
  }

  static func strings(_ texts: [String]) -> Document { .list(texts.map { .string($0) }) }

  /// Without a final line feed.
  func text(indented: Bool = true) -> String {
    var text = ""
    write(to: &text, level: isFlat ? nil : indented ? 0 : nil)
    return text
  }

  private var isFlat: Bool {
    if case .value = self { true } else { false }
  }

  private func write(to text: inout String, level: Int?) {
    switch self {
    // Values stay on one line, so that two exports differ in one line for each key.
    case .value(let value): text += ValueJSON.text(value)
    case .list(let documents):
      Self.write("[", documents.map { ("", $0) }, "]", to: &text, level: level)
    case .members(let members):
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let separator = level == nil ? ":" : ": "
      let named = sorted.map { (ValueJSON.text(.string($0.key)) + separator, $0.value) }
      Self.write("{", named, "}", to: &text, level: level)
    }
  }

  private static func write(
    _ open: String, _ elements: [(String, Document)], _ close: String, to text: inout String,
    level: Int?
  ) {
    text += open
    let inner = level.map { $0 + 1 }
    for (index, element) in elements.enumerated() {
      if index > 0 { text += "," }
      newLine(&text, inner)
      text += element.0
      element.1.write(to: &text, level: inner)
    }
    if !elements.isEmpty { newLine(&text, level) }
    text += close
  }

  private static func newLine(_ text: inout String, _ level: Int?) {
    guard let level else { return }
    text += "\n" + String(repeating: "  ", count: level)
  }
}
