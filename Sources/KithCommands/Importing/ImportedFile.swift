package import Foundation
import KithCore

/// The values of a settings file that can be stored, and the reasons for the others.
package struct ImportedFile: Sendable {
  struct Entry: Equatable {
    let key: String
    let value: PropertyListValue
  }

  let format: ImportFormat
  /// Text before every key.
  let prefix: String
  /// In the order of the file, or of a property list by the keys' UTF-8 bytes. No key occurs twice.
  /// The store's limits are not checked here.
  var entries: [Entry] = []
  /// In the same order, and then the keys that occur more than once.
  var skipped: [ImportSummary.Refused] = []
  /// The forms of a dconf dump's values (``GVariantText``).
  var forms: [Key: PropertyListValue] = [:]
  /// How often the file has each key, with the prefix.
  private var occurrences: [Key: Int] = [:]

  /// A nil format is detected. Throws ``ImportError`` if the file as a whole cannot be read.
  package init(_ data: Data, as format: ImportFormat? = nil, prefix: String = "") throws {
    let data = try ImportFormat.utf8(data)
    self.format = try format ?? ImportFormat.detect(data)
    self.prefix = prefix
    switch self.format {
    case .json: try takeJSON(data)
    case .plist: try takePropertyList(data)
    case .dconf: try takeDconf(data, isCertain: format != nil)
    }
    refuseRepeated()
  }

  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    let key = prefix + key
    occurrences[Key(key), default: 0] += 1
    do {
      entries.append(Entry(key: key, value: try value()))
    } catch {
      skipped.append(.init(key: key, code: "notAValue", reason: "\(error)"))
    }
  }

  /// The same in all formats, as programs differ in which of the values they take.
  private mutating func refuseRepeated() {
    let repeated = Set(occurrences.lazy.filter { $0.value > 1 }.map(\.key))
    guard !repeated.isEmpty else { return }
    entries.removeAll { repeated.contains(Key($0.key)) }
    skipped.removeAll { repeated.contains(Key($0.key)) }
    skipped += repeated.sorted().map { key in
      .init(
        key: key.text, code: "notAValue",
        reason: "the file has the key \(occurrences[key] ?? 2) times; none of its values is taken")
    }
  }
}

/// A file, or a value of it, cannot be imported.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// For people: the mistake, its position, and the remedy.
  let description: String
  /// Whether the text is of its format, but no value has its content.
  let isText: Bool

  init(_ description: String, isText: Bool = false) {
    self.description = description
    self.isText = isText
  }
}
