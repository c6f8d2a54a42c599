package import Kith
import KithCore

/// The way into a store: for `kith import`, and for the page of `kith web`.
extension ImportedFile {
  /// Writes what the store takes, durably. `progress` gets the number of finished keys.
  package func write(
    to store: String, at node: any NodeAccess,
    progress: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws -> ImportSummary {
    let start = ContinuousClock.now
    var run = ImportRun(progress: progress)
    try await run.write(entries) { chunk in
      try await node.write(each: chunk.map { [($0.key, $0.value)] }, in: store)
    }
    if format == .dconf, !run.imported.isEmpty {
      let key = DconfDocument.textsKey
      let old = try await node.values(in: store)[Key(key)]
      if let new = DconfDocument.texts(old, after: run.imported, with: texts) {
        try await run.write([Entry(key: key, value: new)]) { _ in
          try await node.write(each: [[(key, new)]], in: store)
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
    try await run.write(entries) { chunk in trial.write(each: chunk.map { [($0.key, $0.value)] }) }
    return summary(run, isDryRun: true, since: start)
  }

  private func summary(
    _ run: ImportRun, isDryRun: Bool, since start: ContinuousClock.Instant
  ) -> ImportSummary {
    ImportSummary(
      format: format,
      imported: run.imported.count { format != .dconf || $0 != DconfDocument.textsKey },
      refused: skipped + run.refused, isDryRun: isDryRun,
      seconds: (ContinuousClock.now - start) / .seconds(1))
  }
}
