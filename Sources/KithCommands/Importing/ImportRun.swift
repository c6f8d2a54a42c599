import Kith
import KithCore

/// Writes entries in transactions. A refused one is halved until each refused key is alone.
struct ImportRun: Sendable {
  static let keysPerTransaction = 64
  /// The most encoded bytes of a transaction with several keys.
  static let bytesPerTransaction = 128 << 10

  private(set) var imported: [String] = []
  private(set) var refused: [ImportSummary.Refused] = []
  /// Gets the number of finished keys.
  var progress: @Sendable (Int) -> Void = { _ in }

  /// `commit` writes durably, all entries or none. Rethrows its errors that are not refusals. Earlier
  /// writes then stay.
  mutating func write(
    _ entries: [ImportedFile.Entry],
    commit: (ArraySlice<ImportedFile.Entry>) async throws -> Void
  ) async throws {
    for chunk in Self.chunks(of: entries) {
      try await write(chunk, commit: commit)
    }
  }

  private mutating func write(
    _ chunk: ArraySlice<ImportedFile.Entry>,
    commit: (ArraySlice<ImportedFile.Entry>) async throws -> Void
  ) async throws {
    do {
      try await commit(chunk)
      imported += chunk.map(\.key)
    } catch let error as KithError where error.isRefusal {
      if chunk.count == 1, let entry = chunk.first {
        refused.append(
          ImportSummary.Refused(
            key: entry.key, code: error.code.description, reason: error.message))
      } else {
        let middle = chunk.startIndex + chunk.count / 2
        try await write(chunk[..<middle], commit: commit)
        try await write(chunk[middle...], commit: commit)
        return
      }
    }
    progress(imported.count + refused.count)
  }

  static func chunks(of entries: [ImportedFile.Entry]) -> [ArraySlice<ImportedFile.Entry>] {
    var chunks: [ArraySlice<ImportedFile.Entry>] = []
    var start = 0
    var bytes = 0
    for (index, entry) in entries.enumerated() {
      // A value without an encoding counts as zero bytes; the store will report the error.
      let size = (try? EncodedValue(entry.value).size) ?? 0
      let isFull = index - start >= keysPerTransaction || bytes + size > bytesPerTransaction
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

extension KithError {
  /// Whether other keys may still succeed.
  var isRefusal: Bool {
    [Code.invalidKey, .valueTooLarge, .quotaExceeded, .unsupportedValue].contains(code)
  }
}
