package import KithCrypto

/// What checkers look at in a store of a replica: the simulator, and nothing that a program runs.
/// Plain values, so that what judges the model shares no code with it.
package struct StoreInspection: Sendable {
  /// A published entry that the state keeps.
  package struct Kept: Sendable {
    package var entry: Entry
    /// The BLAKE2b-256 of its plaintext.
    package var digest: Digest256
    /// The change set that holds it.
    package var changeSet: ChangeSetReference
    package var index: UInt32
    /// When that was published.
    package var published: HybridTime
  }

  /// What a key shows.
  package struct Shown: Hashable, Sendable {
    package var step: ShownStep
    package var value: EncodedValue

    package init(step: ShownStep, value: EncodedValue) {
      self.step = step
      self.value = value
    }
  }

  /// A local transaction that is not published.
  package struct Draft: Hashable, Sendable {
    package var ordinal: UInt64
    package var clock: HybridTime
    package var operations: [Operation]
  }

  package var policy: Policy
  /// Published entries by key, newest first: one, or two where there is a runner-up.
  package var slots: [Key: [Kept]] = [:]
  /// What the drafts would publish now, by key.
  package var drafted: [Key: Entry] = [:]
  package var shown: [Key: Shown] = [:]
  package var drafts: [Draft] = []
  /// The sequence up to which each chain is covered.
  package var covered: [ChainID: UInt64] = [:]
  /// The highest sequence of a signed header received of each chain.
  package var received: [ChainID: UInt64] = [:]
  /// Change sets kept.
  package var changeSets: Set<ChangeSetReference> = []
  /// Bytes counted of each author.
  package var weights: [DeviceID: Int] = [:]
  package var draftBytes = 0
  package var refusalBytes = 0
  package var quarantined = 0
}

extension Replica {
  /// A store as checkers see it; nil where it is not open.
  ///
  /// - Complexity: O(*n*) in the keys, drafts and change sets.
  package func inspect(_ identifier: StoreIdentifier) -> StoreInspection? {
    guard let store = stores[identifier] else { return nil }
    var seen = StoreInspection(policy: store.policy)
    seen.slots = store.state.slots.mapValues { slot in
      slot.kept.compactMap { kept in
        kept.home.map {
          StoreInspection.Kept(
            entry: kept.entry, digest: kept.digest, changeSet: $0.changeSet, index: $0.index,
            published: store.log.changeSets[$0.changeSet]?.clock ?? .zero)
        }
      }
    }
    seen.drafted = store.state.drafted.mapValues(\.entry)
    seen.shown = store.state.shown.mapValues { .init(step: $0.step, value: $0.value) }
    seen.drafts = store.drafts.map {
      .init(ordinal: $0.ordinal, clock: $0.clock, operations: $0.operations)
    }
    seen.covered = store.log.vector
    seen.received = store.log.chains.mapValues(\.received)
    seen.changeSets = Set(store.log.changeSets.keys)
    seen.weights = store.log.weights.byAuthor
    seen.draftBytes = store.draftBytes
    seen.refusalBytes = store.refusalBytes
    seen.quarantined = store.quarantined
    return seen
  }

  /// The digest of a store's state; nil where it is not open.
  package mutating func digest(of identifier: StoreIdentifier) -> Digest256? {
    stores[identifier]?.digest()
  }

  /// What is covered of a store, without the cost of a whole inspection.
  package func covered(of identifier: StoreIdentifier) -> [ChainID: UInt64] {
    stores[identifier]?.log.vector ?? [:]
  }

  /// What this device believes that another covers of a store.
  package func believed(of device: DeviceID, in identifier: StoreIdentifier) -> [ChainID: UInt64] {
    knowledge[device]?[identifier] ?? [:]
  }

  /// The chain under which this device publishes now; nil before the start.
  package var ownChain: ChainID? {
    incarnation.map { ChainID(device: keys.id, incarnation: $0) }
  }

  /// The latest reading of the hybrid logical clock.
  package var hybridClock: HybridTime { clock.latest }

  /// Whether another device's time counts.
  package var isTimeAdopted: Bool { timeKeeper.followed != nil }

  /// The clocks of the drafts of a store, by ordinal.
  package func draftClocks(of identifier: StoreIdentifier) -> [UInt64: HybridTime] {
    let drafts = stores[identifier]?.drafts ?? []
    return Dictionary(
      drafts.map { ($0.ordinal, $0.clock) }, uniquingKeysWith: { _, last in last })
  }

  /// What was counted since the start, without the cost of a whole status.
  package var counted: ReplicaStatus.Counters { counters }

  /// Sessions on which stores are exchanged.
  package var exchangingSessions: [SessionID] {
    sessions.filter(\.value.isExchanging).keys.sorted()
  }

  /// The largest author's share that a store takes, in bytes, before the last change set.
  package static func authorLimit(under policy: Policy) -> Int {
    policy.room(factor: Limits.authorFactor)
  }
}
