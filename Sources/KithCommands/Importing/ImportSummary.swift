import Kith
import KithCore
import KithTerminal

package struct ImportSummary: Equatable, Sendable {
  package struct Refused: Equatable, Sendable {
    var key: String
    /// The error's code, or `notAValue`.
    var code: String
    var reason: String
  }

  /// As the user gave it.
  var file = ""
  var format: ImportFormat
  /// In a dry run, the number of keys that would be written.
  var imported: Int
  /// First the keys without a value, then those that the store refused, each in the order of the
  /// file.
  var refused: [Refused]
  /// Warnings of values that were imported, but not wholly.
  var warning: String?
  var isDryRun: Bool
  var seconds: Double

  func text(_ style: Style) -> String {
    let verb = isDryRun ? "would be imported" : "imported"
    let time = isDryRun ? "" : " in \(Format.duration(seconds: seconds))"
    let keys = Format.count(imported, "key")
    var lines = [
      style(.good, "\(keys) \(verb)") + " from \(file) (\(format.rawValue))\(time)"
    ]
    if !refused.isEmpty {
      lines.append(style(.bad, "\(Format.count(refused.count, "key")) refused:"))
      // No table, because a refused key may have any length.
      lines += refused.map { item in
        " " + style(.strong, Columns.printable(item.key)) + "  " + Columns.printable(item.reason)
      }
    }
    if let warning { lines.append(style(.warning, Columns.printable(warning))) }
    if let longest = longKeys.max() {
      lines.append(
        "\(Format.count(longKeys.count, "key")) would fit in a new store for longer keys: "
          + "--store NAME --key-bytes \(longest)")
    }
    return lines.joined(separator: "\n")
  }

  /// The bytes of the refused keys that a store with another policy would take.
  private var longKeys: [Int] {
    refused.filter { $0.code == KithError.Code.invalidKey.description }.map(\.key.utf8.count)
      .filter { $0 > 0 && $0 <= Policy.maximum.keyBytes }
  }

  package var document: Document {
    .versioned([
      "dryRun": .bool(isDryRun),
      "file": .string(file),
      "format": .string(format.rawValue),
      "imported": .int(imported),
      "refused": .list(
        refused.map {
          .object([
            "code": .string($0.code), "key": .string($0.key), "reason": .string($0.reason),
          ])
        }),
      "seconds": .double(seconds, places: 6), "warning": .string(warning),
    ])
  }
}
