package import Kith

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

  /// Only keys and values. If the only key looks like a tag of ``ValueJSON``, the document is
  /// wrapped as a dictionary.
  var plain: Document {
    guard entries.count == 1, ValueJSON.Tag(rawValue: entries[0].key) != nil else { return members }
    return .members([(ValueJSON.Tag.dictionary.rawValue, members)])
  }

  private var members: Document { .members(entries.map { ($0.key, .value($0.value)) }) }

  package var versioned: Document {
    .versioned([
      "format": .string(Self.format), "store": .string(store), "values": members,
    ])
  }
}
