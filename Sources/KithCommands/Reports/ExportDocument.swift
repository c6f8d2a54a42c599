import Kith

/// The output of `kith export`: a store's shown values, in the same bytes on every device that
/// shows the same.
struct ExportDocument: Sendable {
  /// The document's format, which `kith import` recognises.
  static let format = "kith export"

  var store: String
  var entries: [(key: String, value: PropertyListValue)]

  /// Only keys and values. If the only key looks like a tag of ``ValueJSON``, it is wrapped as a
  /// dictionary's.
  var plain: Document {
    guard entries.count == 1, ValueJSON.Tag(rawValue: entries[0].key) != nil else { return members }
    return .members([(ValueJSON.Tag.dictionary.rawValue, members)])
  }

  private var members: Document { .members(entries.map { ($0.key, .value($0.value)) }) }

  /// The document with format, store and version.
  var versioned: Document {
    .versioned([
      "format": .string(Self.format), "store": .string(store), "values": members,
    ])
  }
}
