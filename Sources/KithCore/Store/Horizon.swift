internal import KithCrypto

/// How far back a store has forgotten removals (`Docs/Protocol.md`, "Merging").
package struct Horizon: Hashable, Sendable {
  /// The latest publishing clock of a forgotten removal, here or where covers came from; zero: none.
  package var clock = HybridTime.zero
  /// Whether the store may hold values that a forgotten removal had removed: it counted covers
  /// without that removal, and has not compared digests with a device that has no such values.
  package var isBelow = false
  /// Devices that were not known to cover a removal as this device forgot it, ascending.
  package var unseen: [DeviceID] = []

  package init(clock: HybridTime = .zero, isBelow: Bool = false, unseen: [DeviceID] = []) {
    self.clock = clock
    self.isBelow = isBelow
    self.unseen = unseen
  }

  package var row: [UInt8] { clock.row + [isBelow ? 1 : 0] + unseen.flatMap(\.bytes) }

  package init?(row: [UInt8]) {
    var bytes = RowBytes(row)
    clock = HybridTime(rawValue: bytes.number(bytes: 8))
    isBelow = bytes.number(bytes: 1) != 0
    while !bytes.left.isEmpty, !bytes.isShort { unseen.append(bytes.read()) }
    guard bytes.isExact else { return nil }
  }
}

/// Removals are bounded. If one was forgotten, a device that never had it may bring its value back.
extension StoreReplica {
  /// Whether a removal that is forgotten had removed a value: this device covers the value's change
  /// set, lacks the value, and would keep it.
  ///
  /// Never while coverage may be false: after damage, on the other side of a fork, or while a revoked
  /// device's data is withheld. `isKnown`: this device has kept that change set, and not another one
  /// of its sequence.
  func isForgotten(_ kept: KeptEntry, in changeSet: ChangeSet, isKnown: Bool) -> Bool {
    if isForgottenRemoval(kept, in: changeSet) { return true }
    guard !kept.entry.isRemoval, kept.entry.stamp.clock <= horizon.clock,
      log.isCovered(changeSet.header), !log.hasLost, unreadable.isEmpty, !log.holdsWithheld,
      isKnown || !log.isOtherSide(changeSet)
    else { return false }
    var slot = state.slots[kept.entry.key]
    guard let outcome = slot?.merge(kept) else { return true }
    return if case .kept = outcome { true } else { false }
  }

  /// Whether a covered removal comes back that removes nothing here. It would be forgotten again at
  /// once, and passed on without end.
  private func isForgottenRemoval(_ kept: KeptEntry, in changeSet: ChangeSet) -> Bool {
    kept.entry.isRemoval && changeSet.header.clock <= horizon.clock
      && log.isCovered(changeSet.header) && state.slots[kept.entry.key] == nil
  }

  /// Publishes the removals of forgotten values again.
  ///
  /// Each has the stamp of its value. So it wins against this value and loses against every later
  /// write, and all devices make the same one, byte for byte.
  func removals(
    of values: [Key: KeptEntry], by sealer: Sealer, clock: inout TimeKeeper,
    entropy: inout any Entropy
  ) -> Batch {
    let entries = values.values.map(\.entry.removal).sorted { $0.key < $1.key }
    var batch = Batch(store: identifier)
    let last = log.chains[sealer.chain]?.received ?? 0
    for part in Sealer.parts(of: entries.map { ($0, $0.plaintext()) }) {
      batch.changeSets.append(
        sealer.seal(
          part.map(\.plaintext), sequence: last + UInt64(batch.changeSets.count) + 1,
          clock: clock.tick(), noncePrefix: entropy.draw()))
    }
    batch.covers = [
      Cover(
        chain: sealer.chain, from: log.chains[sealer.chain]?.covered ?? 0,
        through: last + UInt64(batch.changeSets.count))
    ]
    return batch
  }

  // MARK: The horizon

  /// Another device has forgotten removals up to this clock.
  mutating func raiseHorizon(to clock: HybridTime) -> [Mutation] {
    guard clock > horizon.clock else { return [] }
    horizon.clock = clock
    return [.put(.store(identifier, .horizon), horizon.row)]
  }

  /// A device that is not below the horizon has the same state.
  mutating func leaveBelow() -> [Mutation] {
    guard horizon.isBelow else { return [] }
    horizon.isBelow = false
    isHorizonUnsent = true
    return [.put(.store(identifier, .horizon), horizon.row)]
  }

  /// Removes the devices that have everything now, or left.
  mutating func setUnseen(_ devices: [DeviceID]) -> [Mutation] {
    guard devices != horizon.unseen else { return [] }
    horizon.unseen = devices
    return [.put(.store(identifier, .horizon), horizon.row)]
  }

  // MARK: Forgetting

  func hasExcessRemovals(_ limit: Int) -> Bool { state.removals.count > limit }

  /// Forgets removals over the limit: first those that every other device covers, then those
  /// published first (`Docs/Protocol.md`, "Merging"). `lacking`: the members not known to cover a
  /// change set.
  mutating func pruneRemovals(
    limit: Int, coveredByAll: (ChangeSetReference) -> Bool,
    lacking: (ChangeSetReference) -> [DeviceID]
  ) -> [Mutation] {
    let before = horizon
    let locations = forgetRemovals(limit: limit) { coveredByAll($0.changeSet) }
    let unseen = Set(locations.map(\.changeSet)).flatMap(lacking)
    horizon.unseen = Set(horizon.unseen).union(unseen).sorted()
    let mutations = log.drop(locations, in: identifier)
    return horizon == before
      ? mutations : mutations + [.put(.store(identifier, .horizon), horizon.row)]
  }

  /// Drops such removals from the state only, raises the horizon, and returns their locations.
  mutating func forgetRemovals(
    limit: Int = Limits.removals, coveredByAll: (EntryLocation) -> Bool
  ) -> [EntryLocation] {
    guard hasExcessRemovals(limit) else { return [] }
    let removals = state.removals.compactMap { state.slots[$0]?.newest }
      .map {
        (entry: $0, published: published($0), isCovered: $0.location.map(coveredByAll) ?? false)
      }
      .sorted { left, right in
        left.isCovered != right.isCovered
          ? left.isCovered
          : (left.published, left.entry.entry.stamp, left.entry.entry.key)
            < (right.published, right.entry.entry.stamp, right.entry.entry.key)
      }
    return removals.prefix(removals.count - limit).compactMap { removal in
      state.forgetRemoval(of: removal.entry.entry.key)
      horizon.clock = max(horizon.clock, removal.published)
      return removal.entry.location
    }
  }

  private func published(_ kept: KeptEntry) -> HybridTime {
    kept.location.flatMap { log.changeSets[$0.changeSet]?.clock } ?? kept.entry.stamp.clock
  }
}

extension Entry {
  /// The removal of this value, with the value's stamp.
  var removal: Entry {
    Entry(key: key, stamp: stamp, content: .removed, claim: claim, replaced: replaced)
  }
}

extension ChangeSetLog {
  /// Whether a kept change set shows that this one is the other side of a fork: it has the same
  /// sequence, or is the chain's newest and was published earlier.
  fileprivate func isOtherSide(_ changeSet: ChangeSet) -> Bool {
    let header = changeSet.header
    let last = chains[header.chain]?.received ?? 0
    return isFork(changeSet.reference)
      || header.sequence < last
        && clock(of: header.chain, last).map { header.clock >= $0 } ?? false
  }

  /// Whether the rest of a chain after a sequence was published after a clock, as far as kept change
  /// sets show: publishing clocks rise along a chain.
  func isPublished(_ chain: ChainID, after sequence: UInt64, since clock: HybridTime) -> Bool {
    if clock == .zero { return true }
    if let before = self.clock(of: chain, sequence), before >= clock { return true }
    return self.clock(of: chain, sequence + 1).map { $0 > clock } ?? false
  }

  /// The publishing clock of a kept change set; of a fork the earliest.
  private func clock(of chain: ChainID, _ sequence: UInt64) -> HybridTime? {
    chains[chain]?.kept[sequence]?.compactMap { digest in
      changeSets[
        ChangeSetReference(
          device: chain.device, incarnation: chain.incarnation, sequence: sequence, digest: digest)
      ]?.clock
    }.min()
  }
}
