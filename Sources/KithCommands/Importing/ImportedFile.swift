import Foundation
import KithCore

/// The values of a settings file that can be stored, and the reasons for the others.
struct ImportedFile {
  struct Entry: Equatable {
    let key: String
    let value: PropertyListValue
  }

  struct Skipped: Equatable {
    let key: String
    /// For people.
    let reason: String
  }

  let format: ImportFormat
  /// In the order of the file, or of a property list by the keys' UTF-8 bytes. No key occurs twice.
  /// The store's limits are not checked here.
  var entries: [Entry] = []
  /// In the same order.
  var skipped: [Skipped] = []
  /// Texts of a dconf dump, by their keys, that ``GVariantText`` would not give back.
  var texts: [String: String] = [:]

  /// A nil format is detected. Throws if the file as a whole cannot be read.
  static func read(_ data: Data, as format: ImportFormat? = nil) throws(ImportError) -> ImportedFile
  {
    let format = if let format { format } else { try ImportFormat.detect(data) }
    return switch format {
    case .json: try JSONImporter.read(data)
    case .plist: try PropertyListImporter.read(data)
    case .dconf: try DconfImporter.read(data)
    }
  }

  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    do {
      entries.append(Entry(key: key, value: try value()))
    } catch {
      skipped.append(Skipped(key: key, reason: String(describing: error)))
    }
  }
}

/// A file, or a value of it, cannot be imported.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// For people: the mistake, its position, and the remedy.
  let description: String

  init(_ description: String) { self.description = description }
}
