package import KithCrypto

/// One run of the host, from its start to its end. Another run has another id.
package struct BootID: Hashable, Sendable {
  package let digest: Digest128

  package init(_ digest: Digest128) { self.digest = digest }

  var row: [UInt8] { digest.bytes }

  init?(row: [UInt8]) {
    guard let digest = try? Digest128(row) else { return nil }
    self.digest = digest
  }
}

/// Decides when this device's change sets may be sent before the disk has synced them
/// (`Docs/Decisions/early-sending.md`).
///
/// If the host ends between the two, peers have change sets that the disk lost. So a mark is durable
/// before the first is sent early, and is removed when the device is closed. A start that finds the
/// mark of an earlier run of the host takes a new incarnation.
struct EarlySending: Sendable {
  private struct Chain: Equatable {
    var incarnation: Incarnation
    var generation: UInt8
  }

  /// Nil: unknown, so nothing is sent early.
  private(set) var boot: BootID?
  /// The mark in storage.
  private var mark: BootID?
  /// Its change sets may go early once the commit of the mark is durable.
  private var prepared: Chain?
  private var hasEnded = false

  init(mark: BootID? = nil) { self.mark = mark }

  /// Whether batches of other devices may be relayed early.
  var relays: Bool { boot != nil }

  /// Returns whether peers may have change sets that the disk lost, because the host ended or a sync
  /// failed.
  mutating func start(in boot: BootID?, isCopy: Bool) -> Bool {
    self.boot = boot
    return mark != nil && (mark != boot || isCopy)
  }

  /// Whether a batch may go early. If it may not yet, because the mark has to be durable before,
  /// adds the mark to `mutations`: a round with a mark sends nothing early (``Round/earlySends``).
  ///
  /// `isFresh`: no draft in it was ever to be committed. Otherwise a transaction could be published
  /// again under another claim.
  mutating func allows(
    _ batch: Batch, isFresh: Bool, by incarnation: Incarnation?, used: () -> Int,
    _ time: TimeKeeper, adding mutations: inout [Mutation]
  ) -> Bool {
    guard let boot, let incarnation, !hasEnded, isFresh, let last = batch.changeSets.last?.header,
      time.allowsEarly(last.clock)
    else { return false }
    let chain = Chain(incarnation: incarnation, generation: last.clock.generation)
    if prepared != chain {
      guard used() <= Limits.earlyIncarnations else { return false }
      prepared = chain
      mark = boot
      mutations.append(.put(.earlySending, boot.row))
    }
    return true
  }

  /// Nothing is sent early any more. Returns the mark's removal.
  mutating func end() -> [Mutation] {
    hasEnded = true
    return clear()
  }

  /// After a new incarnation: what was lost is of the one before.
  mutating func clear() -> [Mutation] {
    prepared = nil
    return mark.take() == nil ? [] : [.remove(.earlySending)]
  }
}

extension TimeKeeper {
  /// Whether a start after the end of the host would be later than this publishing clock
  /// (``skipEarlySends()``). Without a clock that goes on while the host is off it may be earlier.
  func allowsEarly(_ published: HybridTime) -> Bool {
    !isWorthless && hasHardware && published.generation == generation
      && published.milliseconds <= host.wallMilliseconds + Limits.earlyMilliseconds
  }

  /// Makes later readings later than all that was sent early before the host ended.
  mutating func skipEarlySends() {
    guard Self.isPossible(Int64(clamping: host.wallMilliseconds)) else { return }
    clock.witness(
      HybridTime(
        generation: generation, milliseconds: host.wallMilliseconds + Limits.earlyMilliseconds + 1))
  }
}
