import Kith
import KithCore
import KithTerminal

/// Writes entries, each by itself: an import is no transaction.
struct ImportRun: Sendable {
  /// Keys that are made durable together.
  static let keysPerCommit = 64
  /// The most encoded bytes of several keys that are made durable together.
  static let bytesPerCommit = 128 << 10

  private(set) var imported: [String] = []
  private(set) var refused: [ImportSummary.Refused] = []
  /// Gets the number of finished keys.
  var progress: @Sendable (Int) -> Void = { _ in }

  /// `commit` writes durably, and returns the error of each entry. An error that is no refusal is
  /// rethrown; earlier writes then stay.
  ///
  /// `trial`: what it refuses is not committed, as a full store takes a millisecond to refuse a key. If
  /// `commit` refuses what it admits, the store has hidden writes, and `commit` decides from then on.
  mutating func write(
    _ entries: [ImportedFile.Entry], trial: TrialStore? = nil,
    commit: (ArraySlice<ImportedFile.Entry>) async throws -> [KithError?]
  ) async throws {
    var trial = trial
    for chunk in Self.chunks(of: entries) {
      var errors = trial?.write(each: chunk.map { [($0.key, $0.value)] }) ?? chunk.map { _ in nil }
      let admitted = zip(chunk.indices, errors).filter { $0.1 == nil }.map(\.0)
      let committed =
        admitted.isEmpty ? [] : try await commit(ArraySlice(admitted.map { chunk[$0] }))
      for (index, error) in zip(admitted, committed) {
        errors[index - chunk.startIndex] = error
        if error != nil { trial = nil }
      }
      for (entry, error) in zip(chunk, errors) {
        if let error {
          guard error.isRefusal else { throw error }
          refused.append(
            ImportSummary.Refused(
              key: entry.key, code: error.code.description, reason: error.message))
        } else {
          imported.append(entry.key)
        }
      }
      progress(imported.count + refused.count)
    }
  }

  static func chunks(of entries: [ImportedFile.Entry]) -> [ArraySlice<ImportedFile.Entry>] {
    var chunks: [ArraySlice<ImportedFile.Entry>] = []
    var start = 0
    var bytes = 0
    for (index, entry) in entries.enumerated() {
      // A value without an encoding counts as zero bytes; the store will report the error.
      let size = (try? EncodedValue(entry.value).size) ?? 0
      let isFull = index - start >= keysPerCommit || bytes + size > bytesPerCommit
      if index > start && isFull {
        chunks.append(entries[start..<index])
        start = index
        bytes = 0
      }
      bytes += size
    }
    if start < entries.count { chunks.append(entries[start...]) }
    return chunks
  }
}

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

  /// Whether nothing was left out.
  var isWhole: Bool { refused.isEmpty && warning == nil }

  func text(_ style: Style) -> String {
    let verb = isDryRun ? "would be imported" : "imported"
    let time = isDryRun ? "" : " in \(Format.duration(seconds: seconds))"
    let keys = Format.count(imported, "key")
    let source = "\(Columns.printable(file)) (\(format.rawValue))"
    var lines = [style(.good, "\(keys) \(verb)") + " from \(source)\(time)"]
    if !refused.isEmpty {
      lines.append(style(.bad, "\(Format.count(refused.count, "key")) refused:"))
      // No table, because a refused key may have any length.
      lines += refused.map { item in
        " " + style(.strong, Columns.printable(item.key)) + "  " + Columns.sentence(item.reason)
      }
    }
    if let warning { lines.append(style(.warning, Columns.sentence(warning))) }
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
