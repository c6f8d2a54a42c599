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
  /// In the same order.
  var skipped: [ImportSummary.Refused] = []
  /// Texts of a dconf dump, by their keys, that ``GVariantText`` would not give back.
  var texts: [String: String] = [:]

  /// A nil format is detected. Throws ``ImportError`` if the file as a whole cannot be read.
  package init(_ data: Data, as format: ImportFormat? = nil, prefix: String = "") throws {
    self.format = try format ?? ImportFormat.detect(data)
    self.prefix = prefix
    switch self.format {
    case .json: try takeJSON(data)
    case .plist: try takePropertyList(data)
    case .dconf: try takeDconf(data)
    }
  }

  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    do {
      entries.append(Entry(key: prefix + key, value: try value()))
    } catch {
      skipped.append(.init(key: prefix + key, code: "notAValue", reason: "\(error)"))
    }
  }
}

/// A file, or a value of it, cannot be imported.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// For people: the mistake, its position, and the remedy.
  let description: String

  init(_ description: String) { self.description = description }
}
