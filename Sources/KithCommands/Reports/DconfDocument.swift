import KithCore

/// A store as `dconf load /` reads it: sections and keys in the order of their UTF-8 bytes.
struct DconfDocument {
  /// The key of a dictionary that an import writes: the texts of a dump that the values alone do not
  /// give back (`uint32 5`, `@as []`, tuples), by their keys.
  static let textsKey = "@dconf"

  /// Without a final line feed.
  let text: String
  /// The keys that dconf cannot have.
  let skipped: [String]

  init(entries: [(key: String, value: PropertyListValue)]) {
    let texts = Self.texts(entries.first { $0.key == Self.textsKey }?.value)
    var sections: [Key: [String]] = [:]
    var skipped: [String] = []
    for (key, value) in entries where key != Self.textsKey {
      if let (section, name) = Self.path(of: key) {
        let text = GVariantText.text(value, like: texts[key])
        sections[Key(section), default: []].append("\(name)=\(text)")
      } else {
        skipped.append(key)
      }
    }
    self.skipped = skipped
    text = sections.sorted { $0.key < $1.key }.map { section, lines in
      (["[\(section.text.isEmpty ? "/" : section.text)]"] + lines).joined(separator: "\n")
    }
    .joined(separator: "\n\n")
  }

  /// Returns the dictionary after an import of these keys; nil if it stays as it was.
  static func texts(
    _ old: PropertyListValue?, after imported: [String], with texts: [String: String]
  ) -> PropertyListValue? {
    let before = Self.texts(old)
    var kept = before
    for key in imported { kept[key] = texts[key] }
    return kept == before ? nil : .dictionary(kept.mapValues { .string($0) })
  }

  private static func texts(_ value: PropertyListValue?) -> [String: String] {
    guard case .dictionary(let members) = value else { return [:] }
    return members.compactMapValues { if case .string(let text) = $0 { text } else { nil } }
  }

  /// Nil if ``ImportedFile`` would not read the key back.
  private static func path(of key: String) -> (section: String, name: String)? {
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard let name = parts.last, parts.allSatisfy({ !$0.isEmpty }),
      key.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control }),
      !name.contains("="), !"#;[".contains(name[name.startIndex]),
      name.first?.isWhitespace == false, name.last?.isWhitespace == false
    else { return nil }
    return (parts.dropLast().joined(separator: "/"), String(name))
  }
}
