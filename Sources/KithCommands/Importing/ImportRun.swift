import Kith
import KithCore

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
  mutating func write(
    _ entries: [ImportedFile.Entry],
    commit: (ArraySlice<ImportedFile.Entry>) async throws -> [KithError?]
  ) async throws {
    for chunk in Self.chunks(of: entries) {
      for (entry, error) in zip(chunk, try await commit(chunk)) {
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
