import Foundation
import KithCore

/// What a settings file holds: the values that can be stored, and what cannot be and why.
struct ImportedFile {
  /// A key and its value.
  struct Entry: Equatable {
    let key: String
    let value: PropertyListValue
  }

  /// A key whose value was left out.
  struct Skipped: Equatable {
    let key: String
    /// For people: what stands there and why it is no value.
    let reason: String
  }

  /// What the content turned out to be.
  let format: ImportFormat
  /// In the order of the file; of a property list, which has none, by the keys' UTF-8 bytes. No key
  /// occurs twice. Whether the store takes them (length, size, depth) is not checked here.
  var entries: [Entry] = []
  /// In the same order.
  var skipped: [Skipped] = []

  /// Reads the content of a settings file.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - format: What it is; nil to find out from the content.
  /// - Returns: What it holds.
  /// - Throws: ``ImportError`` if the file as a whole cannot be read.
  static func read(_ data: Data, as format: ImportFormat? = nil) throws(ImportError) -> ImportedFile
  {
    let format = if let format { format } else { try ImportFormat.detect(data) }
    return switch format {
    case .json: try JSONImporter.read(data)
    case .plist: try PropertyListImporter.read(data)
    case .dconf: try DconfImporter.read(data)
    }
  }

  /// Adds a value, or what is wrong with it.
  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    do {
      entries.append(Entry(key: key, value: try value()))
    } catch {
      skipped.append(Skipped(key: key, reason: String(describing: error)))
    }
  }
}

/// Why a file as a whole cannot be imported.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// For people: what is wrong, where, and what to do.
  let description: String

  init(_ description: String) { self.description = description }
}
