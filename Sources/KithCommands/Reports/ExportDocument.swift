import Kith

/// What `kith export` prints: all that a store shows, the same bytes on every device that shows
/// the same.
struct ExportDocument: Sendable {
  /// Names the document, so that `kith import` knows it.
  static let format = "kith export"

  /// The store's identifier.
  var store: String
  /// What it shows.
  var entries: [(key: String, value: PropertyListValue)]

  /// Keys and values, and nothing else. An only key that looks like a tag of ``ValueJSON`` is
  /// wrapped as a dictionary's would be, so that it is read as what it is.
  var plain: Document {
    guard entries.count == 1, ValueJSON.Tag(rawValue: entries[0].key) != nil else { return members }
    return .members([(ValueJSON.Tag.dictionary.rawValue, members)])
  }

  private var members: Document { .members(entries.map { ($0.key, .value($0.value)) }) }

  /// The keys and values inside a document.
  var versioned: Document {
    .versioned([
      "format": .string(Self.format), "store": .string(store), "values": members,
    ])
  }
}
