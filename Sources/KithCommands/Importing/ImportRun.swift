import Kith

/// Writes what a file holds, in transactions of a sensible size, and finds out which keys the
/// store refuses: a refused transaction is halved until the keys that do not go stand alone.
struct ImportRun: Sendable {
  /// The most keys of a transaction.
  static let keysPerTransaction = 64
  /// The encoded bytes after which a transaction ends.
  static let bytesPerTransaction = 128 << 10

  /// Writes some keys durably: all of them or none.
  typealias Commit = (_ entries: ArraySlice<ImportedFile.Entry>) async throws -> Void

  /// Keys written, in the order of the file.
  private(set) var imported: [String] = []
  /// Keys that the store refused, with why.
  private(set) var refused: [ImportSummary.Refused] = []
  private let progress: @Sendable (Int) -> Void

  /// - Parameter progress: Is told how many keys are done.
  init(progress: @escaping @Sendable (Int) -> Void = { _ in }) {
    self.progress = progress
  }

  /// Writes all entries.
  ///
  /// - Throws: What `commit` throws other than refusals: then what was written before stays.
  mutating func write(_ entries: [ImportedFile.Entry], commit: Commit) async throws {
    for chunk in Self.chunks(of: entries) {
      try await write(chunk, commit: commit)
    }
  }

  private mutating func write(
    _ chunk: ArraySlice<ImportedFile.Entry>, commit: Commit
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

  /// Entries in the pieces that are written at once.
  static func chunks(of entries: [ImportedFile.Entry]) -> [ArraySlice<ImportedFile.Entry>] {
    var chunks: [ArraySlice<ImportedFile.Entry>] = []
    var start = 0
    var bytes = 0
    for (index, entry) in entries.enumerated() {
      // What has no encoding counts nothing; the store will say what is wrong with it.
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
  /// Whether the store refused a write that it took in otherwise: other keys may still go.
  var isRefusal: Bool {
    [Code.invalidKey, .valueTooLarge, .quotaExceeded, .unsupportedValue].contains(code)
  }
}
