package import KithCrypto

/// For checkers and tests.
extension Replica {
  /// Nil if the store is not open.
  ///
  /// - Complexity: O(*n*) in the keys, drafts and change sets.
  package func inspect(_ identifier: StoreIdentifier) -> StoreInspection? {
    guard let store = stores[identifier] else { return nil }
    var seen = StoreInspection(policy: store.policy)
    seen.slots = store.state.slots.mapValues { slot in
      slot.kept.compactMap { kept in
        kept.location.map {
          StoreInspection.Kept(
            entry: kept.entry, digest: kept.digest, changeSet: $0.changeSet, index: $0.index)
        }
      }
    }
    seen.drafted = store.state.drafted.mapValues(\.entry)
    seen.shown = store.state.shown.mapValues { .init(step: $0.step, value: $0.value) }
    seen.drafts = store.drafts.transactions
    seen.covered = store.log.vector
    seen.received = store.log.chains.mapValues(\.received)
    seen.changeSets = Set(store.log.changeSets.keys)
    seen.weights = store.log.weights.byAuthor
    seen.refusalBytes = store.refusals.bytes
    seen.historyBytes = store.history?.bytes ?? 0
    seen.quarantined = store.quarantined
    seen.isBelowHorizon = store.horizon.isBelow
    return seen
  }

  /// Nil if the store is not open.
  package mutating func digest(of identifier: StoreIdentifier) -> Digest256? {
    stores[identifier]?.digest()
  }

  package func covered(of identifier: StoreIdentifier) -> [ChainID: UInt64] {
    stores[identifier]?.log.vector ?? [:]
  }

  /// Another device's coverage, as this device believes.
  package func believed(of device: DeviceID, in identifier: StoreIdentifier) -> [ChainID: UInt64] {
    coverage.covered(by: device, of: identifier)
  }

  /// Another device's processes, by ``ProcessID/shortName``: the one that tells its vectors in a
  /// session, and all that speak for it now.
  package func knownProcesses(of device: DeviceID) -> (session: UInt64?, all: Set<UInt64>) {
    coverage.knownProcesses(of: device)
  }

  /// Nil before the start.
  package var ownChain: ChainID? {
    incarnations.current.map { ChainID(device: keys.id, incarnation: $0) }
  }

  package var hybridClock: HybridTime { clock.latest }

  package func draftClocks(of identifier: StoreIdentifier) -> [Key: HybridTime] {
    stores[identifier]?.drafts.byKey.mapValues(\.clock) ?? [:]
  }

  /// Ascending by number, also expired values.
  package func keptHistory(of identifier: StoreIdentifier) -> [PastValue] {
    stores[identifier]?.history?.all ?? []
  }

  package var counted: NodeStatus.Counters { counters }

  package var exchangingSessions: [SessionID] {
    links.filter(\.value.isExchanging).keys.sorted()
  }

  /// In bytes, before the author's last change set.
  package static func authorLimit(under policy: Policy) -> Int {
    policy.capacity(factor: Limits.authorFactor)
  }

  /// In bytes, unless one value takes more.
  package static func historyLimit(under policy: Policy) -> Int {
    policy.capacityWithKeys(factor: Limits.historyFactor)
  }

  /// Whether this device knows of an object, and did not take it in or find it unreadable.
  package func isUnread(_ name: ObjectName, on carrier: CarrierID) -> Bool {
    switch carriers[carrier]?.objects[name]?.state {
    case .unread, .foreign: true
    case .applied, .unreadable, nil: false
    }
  }

  /// Whether this device got an object, and could not open it.
  package func couldNotOpen(_ name: ObjectName, on carrier: CarrierID) -> Bool {
    if case .unreadable = carriers[carrier]?.objects[name]?.state { true } else { false }
  }
}
