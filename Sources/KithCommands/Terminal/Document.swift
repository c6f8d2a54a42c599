package import Kith
import KithTerminal
import KithValues

/// A JSON document of a command: members sorted by their keys' bytes, values as ``ValueJSON``.
/// Unlike a property-list dictionary, it distinguishes keys that Swift calls equal.
package indirect enum Document {
  /// A value of a store, or a scalar.
  case value(PropertyListValue)
  case list([Document])
  case members([(key: String, value: Document)])

  /// Rises when a member changes its meaning or is removed.
  package static let version = 1

  /// Drops nil members and adds the version.
  package static func versioned(_ members: [String: Document?]) -> Document {
    object(members.merging(["version": .int(version)]) { member, _ in member })
  }

  /// Adds the version to the members.
  package static func versioned(_ document: Document) -> Document {
    guard case .members(let members) = document else { return document }
    return .members(members + [("version", .int(version))])
  }

  /// `try?` hides no error: the types of a status always have a property-list value.
  package static func of(_ value: some Encodable) -> Document {
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
  package static func object(_ members: [String: Document?]) -> Document {
    .members(members.compactMap { key, value in value.map { (key, $0) } })
  }

  package static func int(_ number: Int) -> Document { .value(.integer(Int64(number))) }

  package static func int(_ number: UInt64?) -> Document? {
    number.map { .value(.integer(Int64(clamping: $0))) }
  }

  package static func string(_ text: String) -> Document { .value(.string(text)) }

  package static func string(_ text: String?) -> Document? { text.map { .value(.string($0)) } }

  package static func bool(_ isTrue: Bool) -> Document { .value(.bool(isTrue)) }

  package static func double(_ number: Double, places: Int = 3) -> Document {
    .value(.double(Double(Format.decimals(number, places)) ?? number))
  }

  package static func strings(_ texts: [String]) -> Document { .list(texts.map { .string($0) }) }

  /// Without a final line feed.
  package func text(indented: Bool = true) -> String {
    text(level: indented ? 0 : nil)
  }

  /// A nil level means one line.
  private func text(level: Int?) -> String {
    let inner = level.map { $0 + 1 }
    switch self {
    // Values stay on one line, so that two exports differ in one line for each key.
    case .value(let value): return ValueJSON.text(value)
    case .list(let documents):
      return Self.text("[", documents.map { $0.text(level: inner) }, "]", level)
    case .members(let members):
      let colon = level == nil ? ":" : ": "
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let texts = sorted.map { ValueJSON.quoted($0.key) + colon + $0.value.text(level: inner) }
      return Self.text("{", texts, "}", level)
    }
  }

  private static func text(
    _ open: String, _ elements: [String], _ close: String, _ level: Int?
  ) -> String {
    guard let level, !elements.isEmpty else {
      return open + elements.joined(separator: ",") + close
    }
    let line = "\n" + String(repeating: "  ", count: level)
    return open + elements.map { line + "  " + $0 }.joined(separator: ",") + line + close
  }
}
