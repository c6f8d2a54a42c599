internal import KithCrypto

/// Batches that were published ahead of the time (`Docs/Protocol.md`, "Clocks").
extension Replica {
  /// Applies a batch; or, if its latest publishing clock is a little ahead of the time, has it wait
  /// with those that follow on the session; or, if that is far ahead, ends the session. A joiner
  /// judges no clock of its inviter but by the ration of generations.
  mutating func applyIfInTime(
    _ batch: Batch, taint: Taint, from id: SessionID, _ peer: DeviceID
  ) {
    let latest = batch.changeSets.lazy.map(\.header.clock).max()
    if let latest, let wait = wait(for: latest, on: id) {
      guard wait <= Limits.earlyMilliseconds else {
        let ahead = Int64(clamping: latest.milliseconds) - Int64(clamping: now.wallMilliseconds)
        effects.append(.report(.publishedAhead(peer: peer, milliseconds: ahead)))
        effects.append(.close(id, .clocksDiffer))
        return disconnect(id)
      }
      let retryAt = now.monotonicMilliseconds + UInt64(wait)
      let weight = batch.changeSets.reduce(0) { $0 + $1.weight }
      sessions[id]?.early = EarlyBatches(
        first: (batch, taint), weight: weight, retryAt: retryAt)
      return
    }
    if let latest { hear(generation: latest.generation) }
    apply(batch, taint: taint, from: id, peer)
  }

  /// How long a batch with this latest publishing clock waits; nil: not at all.
  private func wait(for latest: HybridTime, on id: SessionID) -> Int64? {
    guard sessions[id]?.isInviters == true else { return timeKeeper.wait(for: latest) }
    return timeKeeper.counts(latest) ? nil : .max
  }

  /// Has a part of a batch wait behind the early ones of its session.
  mutating func queue(_ part: BatchPart, size: Int, on id: SessionID) {
    guard var early = sessions[id]?.early else { return }
    early.bytes += size + Limits.overheadBytes
    guard early.bytes <= Limits.earlyBytes else {
      effects.append(.close(id, .clocksDiffer))
      return disconnect(id)
    }
    sessions[id]?.early = nil
    early.parts.append((part, size))
    sessions[id]?.early = early
  }

  /// Applies the early batches of a session whose time has come.
  mutating func applyEarly(on id: SessionID) {
    guard let early = sessions[id]?.early, let device = sessions[id]?.device,
      early.retryAt <= now.monotonicMilliseconds
    else { return }
    sessions[id]?.early = nil
    applyIfInTime(early.first.batch, taint: early.first.taint, from: id, device)
    for (part, size) in early.parts { receive(part, size: size, on: id) }
  }
}
