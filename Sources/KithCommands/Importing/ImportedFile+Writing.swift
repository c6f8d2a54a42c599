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
    // Before the values: a device that gets these has the types already.
    let warning = try await warning { try await DconfTypes.keep(self, of: store, at: node) }
    var run = ImportRun(progress: progress)
    try await run.write(entries) { chunk in
      try await node.write(each: chunk.map { [($0.key, $0.value)] }, in: store)
    }
    return summary(run, warning, isDryRun: false, since: start)
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
    let warning = try await warning { try await DconfTypes.rehearse(self, of: store, at: node) }
    return summary(run, warning, isDryRun: true, since: start)
  }

  /// Returns why the types of a dump are not kept; the values are imported nevertheless.
  private func warning(_ keepTypes: () async throws -> Void) async throws -> String? {
    guard format == .dconf, !entries.isEmpty else { return nil }
    do {
      try await keepTypes()
      return nil
    } catch let error as KithError where error.isRefusal || error.code == .tooManyStores {
      return
        "the types of some values are not kept, so kith export --format dconf writes the usual ones: "
        + error.message
    }
  }

  private func summary(
    _ run: ImportRun, _ warning: String?, isDryRun: Bool, since start: ContinuousClock.Instant
  ) -> ImportSummary {
    ImportSummary(
      format: format, imported: run.imported.count, refused: skipped + run.refused,
      warning: warning, isDryRun: isDryRun, seconds: (ContinuousClock.now - start) / .seconds(1))
  }
}
