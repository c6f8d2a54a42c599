import Foundation
import KithCore

/// The content of a settings file: the values that can be stored, and the reasons for the others.
struct ImportedFile {
  struct Entry: Equatable {
    let key: String
    let value: PropertyListValue
  }

  /// A key whose value was left out.
  struct Skipped: Equatable {
    let key: String
    /// The reason for people: the content found, and why it is not a value.
    let reason: String
  }

  let format: ImportFormat
  /// The entries in the order of the file, or of a property list by the keys' UTF-8 bytes. No key
  /// occurs twice. The store's limits are not checked here.
  var entries: [Entry] = []
  /// The keys left out, in the same order.
  var skipped: [Skipped] = []

  /// Reads the content of a settings file.
  ///
  /// - Parameters:
  ///   - data: The whole file.
  ///   - format: The format; nil to detect it.
  /// - Returns: The content.
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

  /// Adds a value, or the reason why it is left out.
  mutating func add(_ key: String, _ value: () throws -> PropertyListValue) {
    do {
      entries.append(Entry(key: key, value: try value()))
    } catch {
      skipped.append(Skipped(key: key, reason: String(describing: error)))
    }
  }
}

/// The error for a file that cannot be imported as a whole.
struct ImportError: Error, Equatable, CustomStringConvertible {
  /// The message for people: the mistake, its position, and the remedy.
  let description: String

  init(_ description: String) { self.description = description }
}
