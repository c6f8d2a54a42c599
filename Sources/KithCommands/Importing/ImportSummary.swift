import KithTerminal

struct ImportSummary: Equatable, Sendable {
  struct Refused: Equatable, Sendable {
    var key: String
    /// The error's code, or `notAValue` if the file's entry is not a value.
    var code: String
    var reason: String
  }

  /// The file's name as the user gave it.
  var file: String
  var format: ImportFormat
  /// The number of keys written, or in a dry run, the number that would be.
  var imported: Int
  /// The refused keys in the order of the file: first those without a value, then those that the
  /// store refused.
  var refused: [Refused]
  /// Whether this was a dry run, which writes nothing.
  var isDryRun: Bool
  /// The time taken, in seconds.
  var seconds: Double

  /// The summary for people, in lines.
  func text(_ style: Style) -> String {
    let verb = isDryRun ? "would be imported" : "imported"
    let time = isDryRun ? "" : " in \(Humane.duration(seconds: seconds))"
    let keys = Humane.count(imported, "key")
    var lines = [
      style(.good, "\(keys) \(verb)") + " from \(file) (\(format.rawValue))\(time)"
    ]
    if !refused.isEmpty {
      lines.append(style(.bad, "\(Humane.count(refused.count, "key")) refused:"))
      // Whole keys without a table, because a refused key may have any length.
      lines += refused.map { item in
        " " + style(.strong, Columns.printable(item.key)) + "  " + Columns.printable(item.reason)
      }
    }
    return lines.joined(separator: "\n")
  }

  var document: Document {
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
      "seconds": .double(seconds, places: 6),
    ])
  }
}
