import Foundation
import Testing

/// Docs/Protocol.md and its sub-pages: what they print for others to write the same again.
struct ProtocolPages {
  private static let root = URL(filePath: #filePath).appending(path: "../../../..").standardized

  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The pages in one text.
  let markdown: String
  /// By title and label. A label is four spaces in; its value follows it, or is below it.
  let examples: [String: [String: String]]

  init() throws {
    let folder = Self.root.appending(path: "Docs/Protocol")
    let pages = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.hasSuffix(".md") }.sorted().map { "Docs/Protocol/\($0)" }
    markdown = try (["Docs/Protocol.md"] + pages).map(Self.text(of:)).joined(separator: "\n")
    var examples: [String: [String: String]] = [:]
    for part in markdown.components(separatedBy: "\n#### Example: ").dropFirst() {
      let lines = part.components(separatedBy: "\n#")[0].components(separatedBy: "\n")
      var found: [String: String] = [:]
      var label = ""
      for line in lines.dropFirst() {
        if let begin = line.wholeMatch(of: #/    (\S.*?)(?:  +(\S+))?/#) {
          label = String(begin.1)
          found[label] = begin.2.map(String.init) ?? ""
        } else if line.hasPrefix("     ") {
          found[label, default: ""] += line.trimmingCharacters(in: .whitespaces)
        }
      }
      examples[lines[0]] = found
    }
    self.examples = examples
  }

  /// A value as the pages print it: hexadecimal digits, or a text for people.
  func text(_ title: String, _ label: String) throws -> String {
    try #require(examples[title]?[label], "the pages have no \(label) of \(title)")
  }
}

/// A message of a schema, by its fields' numbers.
struct ProtoField: Hashable {
  var name: String
  var type: String
  var isRepeated: Bool
}

/// The messages of a proto3 schema, comments or not.
func protoMessages(_ schema: String) -> [String: [UInt64: ProtoField]] {
  let bare = schema.replacing(/\/\/[^\n]*/, with: "")
  var messages: [String: [UInt64: ProtoField]] = [:]
  for message in bare.matches(of: /message (\w+) \{((?:[^{}]|\{[^{}]*\})*)\}/) {
    var fields: [UInt64: ProtoField] = [:]
    for field in message.2.matches(of: /(repeated )?(?:optional )?(\w+) (\w+) = (\d+);/) {
      fields[UInt64(field.4) ?? 0] = ProtoField(
        name: String(field.3), type: String(field.2), isRepeated: field.1 != nil)
    }
    messages[String(message.1)] = fields
  }
  return messages
}
