package import Foundation
package import Kith
import KithCore

/// A settings file on its way into a store: for `kith import`, and for the page of `kith web`.
package struct StoreImport: Sendable {
  private let content: ImportedFile
  private let prefix: String

  /// A nil format is detected. `prefix` is text before every key. Throws ``ImportError`` if the file
  /// as a whole cannot be read.
  package init(_ data: Data, as format: ImportFormat? = nil, prefix: String = "") throws {
    content = try ImportedFile.read(data, as: format)
    self.prefix = prefix
  }

  /// The number of keys that ``write(to:at:progress:)`` tries.
  var count: Int { content.entries.count }

  /// Writes what the store takes, durably. `progress` gets the number of finished keys.
  package func write(
    to store: String, at node: any NodeAccess,
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws -> ImportSummary {
    let start = ContinuousClock.now
    var run = ImportRun(progress: progress)
    try await run.write(entries) { chunk in
      try await node.write(chunk.map { ($0.key, $0.value) }, in: store)
    }
    if content.format == .dconf, !run.imported.isEmpty {
      let key = DconfDocument.textsKey
      let old = try await node.values(in: store)[Key(key)]
      let texts = [String: String](
        uniqueKeysWithValues: content.texts.map { (prefix + $0.key, $0.value) })
      if let new = DconfDocument.texts(old, after: run.imported, with: texts) {
        try await run.write([ImportedFile.Entry(key: key, value: new)]) { _ in
          try await node.write([(key, new)], in: store)
        }
      }
    }
    return summary(run, isDryRun: false, since: start)
  }

  /// Writes nothing, and returns what ``write(to:at:progress:)`` would. `keyBytes` is the limit of a
  /// store that is still to be created.
  package func rehearse(
    _ store: String, at node: any NodeAccess, keyBytes: Int? = nil
  ) async throws -> ImportSummary {
    let start = ContinuousClock.now
    var usage = try await node.usage(of: store)
    if let keyBytes { usage.policy.keyBytes = max(usage.policy.keyBytes, keyBytes) }
    var trial = TrialStore(values: try await node.values(in: store), usage: usage)
    var run = ImportRun()
    try await run.write(entries) { chunk in try trial.write(chunk.map { ($0.key, $0.value) }) }
    return summary(run, isDryRun: true, since: start)
  }

  private var entries: [ImportedFile.Entry] {
    content.entries.map { ImportedFile.Entry(key: prefix + $0.key, value: $0.value) }
  }

  private func summary(
    _ run: ImportRun, isDryRun: Bool, since start: ContinuousClock.Instant
  ) -> ImportSummary {
    let skipped = content.skipped.map { item in
      ImportSummary.Refused(key: prefix + item.key, code: "notAValue", reason: item.reason)
    }
    return ImportSummary(
      format: content.format,
      imported: run.imported.count {
        content.format != .dconf || $0 != DconfDocument.textsKey
      },
      refused: skipped + run.refused, isDryRun: isDryRun,
      seconds: (ContinuousClock.now - start).seconds)
  }
}
