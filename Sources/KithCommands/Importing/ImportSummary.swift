import KithTerminal

/// What `kith import` did.
struct ImportSummary: Equatable, Sendable {
  /// A key that was not imported.
  struct Refused: Equatable, Sendable {
    var key: String
    /// The error's code, `notAValue` where the file holds something that is no value.
    var code: String
    /// Why, for people.
    var reason: String
  }

  /// The file's name as it was given.
  var file: String
  /// The format that it has.
  var format: ImportFormat
  /// How many keys were written, or would be in a dry run.
  var imported: Int
  /// In the order of the file: first what is no value, then what the store refused.
  var refused: [Refused]
  /// Whether nothing was written.
  var isDryRun: Bool
  /// How long it took.
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
      // Whole keys, and no table: a key that is refused may be of any length.
      lines += refused.map { item in
        " " + style(.strong, Columns.printable(item.key)) + "  " + Columns.printable(item.reason)
      }
    }
    return lines.joined(separator: "\n")
  }

  /// The summary for programs.
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
