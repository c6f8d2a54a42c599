package import Kith
import KithCore
import KithValues

/// The output of `kith export`: devices that show the same values export the same bytes.
package struct ExportDocument: Sendable {
  /// `kith import` recognises a document by this value.
  static let format = "kith export"

  var store: String
  var entries: [(key: String, value: PropertyListValue)]

  package init(store: String, entries: [(key: String, value: PropertyListValue)]) {
    self.store = store
    self.entries = entries
  }

  /// Only keys and values. If these look like a tag of ``ValueJSON`` or like ``versioned``, the
  /// document is wrapped as a dictionary.
  var plain: Document {
    let isTag = entries.count == 1 && ValueJSON.Tag(rawValue: entries[0].key) != nil
    let isVersioned = entries.contains { $0.key == "format" && $0.value == .string(Self.format) }
    guard isTag || isVersioned else { return members }
    return .members([(ValueJSON.Tag.dictionary.rawValue, members)])
  }

  private var members: Document { .members(entries.map { ($0.key, .value($0.value)) }) }

  package var versioned: Document {
    .versioned([
      "format": .string(Self.format), "store": .string(store), "values": members,
    ])
  }
}

/// A store as `dconf load /` reads it: sections and keys in the order of their UTF-8 bytes.
struct DconfDocument {
  /// Without a final line feed.
  let text: String
  /// The keys that dconf cannot have.
  let skipped: [String]
  /// The keys whose values GVariant's text cannot have.
  let unwritable: [String]
  /// The keys whose types are a guess by their values.
  let guessed: [String]

  init(entries: [(key: String, value: PropertyListValue)], forms: [Key: PropertyListValue]) {
    var sections: [Key: [String]] = [:]
    var (skipped, unwritable, guessed): ([String], [String], [String]) = ([], [], [])
    for (key, value) in entries {
      guard let (section, name) = Self.path(of: key) else {
        skipped.append(key)
        continue
      }
      let known = forms[Key(key)].flatMap { GVariantText.text(value, as: $0) }
      guard let text = known ?? GVariantText.text(value) else {
        unwritable.append(key)
        continue
      }
      if known == nil, !GVariantText.isDefault(value) { guessed.append(key) }
      sections[Key(section), default: []].append("\(name)=\(text)")
    }
    (self.skipped, self.unwritable, self.guessed) = (skipped, unwritable, guessed)
    text = sections.sorted { $0.key < $1.key }.map { section, lines in
      (["[\(section.text.isEmpty ? "/" : section.text)]"] + lines).joined(separator: "\n")
    }
    .joined(separator: "\n\n")
  }

  /// Nil if no key file holds the key: ``ImportedFile`` or `dconf load` would not read it back.
  private static func path(of key: String) -> (section: String, name: String)? {
    let scalars = key.unicodeScalars
    let parts = scalars.split(separator: "/", omittingEmptySubsequences: false)
    guard let name = parts.last, parts.allSatisfy({ !$0.isEmpty }),
      scalars.allSatisfy({ $0.properties.generalCategory != .control && $0 != "[" && $0 != "]" }),
      !name.contains("="), let first = name.first, let last = name.last,
      first != "#", first != ";",
      !first.properties.isWhitespace, !last.properties.isWhitespace
    else { return nil }
    return (parts.dropLast().map(String.init).joined(separator: "/"), String(name))
  }
}
