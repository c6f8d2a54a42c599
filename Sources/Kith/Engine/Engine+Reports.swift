internal import KithCore
internal import Logging

extension Engine {
  /// Logs events for an operator, without keys and values.
  func report(_ report: Report) { log(line(for: report)) }

  /// Logs a line with names instead of ids; repetitions only at debug.
  func log(_ line: LogLine) {
    let subject = line.subject
    let now = clock().monotonicMilliseconds
    let isRepeated = !rateLimit.withLock { $0.take(subject, at: now) }
    var metadata = line.details.mapValues { Logger.MetadataValue.string($0) }
    if let device = subject.device { metadata["device"] = "\(name(device))" }
    if let store = subject.store { metadata["store"] = "\(store.rawValue)" }
    logger.log(
      level: isRepeated ? .debug : subject.message.level, "\(subject.message.rawValue)",
      metadata: metadata)
  }

  /// Logs how the status changes, until cancelled.
  func logStatusChanges(_ status: @Sendable () -> NodeStatus) async {
    let progress = self.progress
    var changes = StatusLog()
    while !Task.isCancelled {
      let version = progress.version
      for line in changes.lines(status(), at: clock().monotonicMilliseconds) { log(line) }
      // A status costs digests, so a busy node's is read once a second. A line that was left out for
      // the rate limit is due later, without a change.
      try? await Task.sleep(for: .seconds(1))
      _ = await progress.wait(timeout: .seconds(60)) { progress.version > version }
    }
  }

  private func line(for report: Report) -> LogLine {
    switch report {
    case .notStored(let store, let count):
      LogLine(.notStored, store: store, ["count": "\(count)"])
    case .rejected(let peer, let count):
      LogLine(.rejected, device: peer, ["count": "\(count)"])
    case .misdirected(let store, let peer, let author, let count):
      LogLine(
        .misdirected, device: peer, store: store,
        ["author": name(author), "count": "\(count)"])
    case .quarantined(let store, let author, let count):
      LogLine(.quarantined, device: author, store: store, ["count": "\(count)"])
    case .fork(let store, let device, let sequence):
      LogLine(.fork, device: device, store: store, ["sequence": "\(sequence)"])
    case .clone(let device): LogLine(.clone, device: device)
    case .newIncarnation: LogLine(.newIncarnation)
    case .tooManyIncarnations: LogLine(.tooManyIncarnations)
    case .divergence(let store, let peer): LogLine(.divergence, device: peer, store: store)
    case .policyMismatch(let store, let peer, let ours, let theirs):
      LogLine(
        .policyMismatch, device: peer, store: store,
        ["ours": "\(ours)", "theirs": "\(theirs)"])
    case .clocksDiffer(let peer, let milliseconds, let outcome):
      LogLine(
        .clocksDiffer, device: peer,
        [
          "clock": NodeStatus.clockText(milliseconds),
          "meaning": "stores are not exchanged. \(outcome.consequence)",
        ])
    case .clocksAgree(let peer): LogLine(.clocksAgree, device: peer)
    case .clockSetBack(let milliseconds):
      LogLine(.clockSetBack, ["milliseconds": "\(milliseconds)"])
    case .newGeneration(let generation, let milliseconds):
      LogLine(
        .newGeneration, ["generation": "\(generation)", "milliseconds": "\(milliseconds)"])
    case .noGenerationLeft(let generation):
      LogLine(.noGenerationLeft, ["generation": "\(generation)"])
    case .publishedAhead(let peer, let milliseconds):
      LogLine(.publishedAhead, device: peer, ["milliseconds": "\(milliseconds)"])
    case .generationTooLate(let peer, let generation):
      LogLine(.generationTooLate, device: peer, ["generation": "\(generation)"])
    case .authorOverLimit(let store, let author):
      LogLine(.authorOverLimit, device: author, store: store)
    case .revoked(let device, let revokers):
      LogLine(
        device == keys.id ? .revokedHere : .revoked, device: device,
        ["by": revokers.map(name).joined(separator: ", ")])
    case .damaged(let rows, let stores):
      LogLine(
        .damaged,
        ["rows": "\(rows)", "stores": stores.map(\.rawValue).joined(separator: ", ")])
    case .regained(let store): LogLine(.regained, store: store)
    case .lossAccepted(let store): LogLine(.lossAccepted, store: store)
    }
  }

  private func name(_ device: DeviceID) -> String {
    read { $0.roster.name(of: device) } ?? "\(device)"
  }
}
