public import KithCrypto

extension Replica {
  /// What a store shows, by key. Empty where the store is not open.
  ///
  /// - Complexity: O(*n*) in the keys shown.
  public func view(of identifier: StoreIdentifier) -> [Key: EncodedValue] {
    stores[identifier]?.state.shown.mapValues(\.value) ?? [:]
  }

  /// What a store uses of its policy; nil where the store is not open.
  public func usage(of identifier: StoreIdentifier) -> Usage? {
    stores[identifier].map { store in
      Usage(
        bytes: store.state.shownBytes, keys: store.state.shown.count, policy: store.policy)
    }
  }

  /// Newest writes that the quota does not show, by key.
  public func hiddenEntries(of identifier: StoreIdentifier) -> [HiddenEntry] {
    guard let state = stores[identifier]?.state else { return [] }
    return state.hiddenKeys.compactMap { key in
      guard let entry = state.slot(key)?.newest.entry, let value = entry.value else { return nil }
      return HiddenEntry(key: key, value: value, stamp: entry.stamp)
    }
  }

  /// Refusals that the program has not taken, oldest first.
  public func refusals(of identifier: StoreIdentifier) -> [Refusal] {
    stores[identifier]?.refusals ?? []
  }

  /// Stores of the account that this node knows, in order.
  public var storeIdentifiers: [StoreIdentifier] { stores.keys.sorted() }

  /// Whether local transactions of a store wait to be published.
  public func hasUnpublished(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.drafts.isEmpty == false
  }

  /// Of every other member, whether it is known to have everything that this device published.
  public func holders(of identifier: StoreIdentifier) -> [DeviceID: Bool] {
    guard let store = stores[identifier] else { return [:] }
    let own = store.log.vector.filter { $0.key.device == keys.id }
    var holders: [DeviceID: Bool] = [:]
    for member in roster.sortedMembers where member.device != keys.id {
      let known = knowledge[member.device]?[identifier] ?? [:]
      holders[member.device] = own.allSatisfy { known[$0.key] ?? 0 >= $0.value }
    }
    return holders
  }

  /// What this replica knows of itself and its peers.
  public mutating func status() -> ReplicaStatus {
    ReplicaStatus(
      peers: sessions.keys.sorted().compactMap(peerStatus),
      devices: roster.sortedMembers.map(deviceStatus),
      stores: stores.keys.sorted().compactMap { storeStatus($0) },
      isProvisional: isProvisional, clock: clockStatus, isBarren: isBarren,
      counters: counters)
  }

  private func peerStatus(_ id: SessionID) -> ReplicaStatus.Peer? {
    sessions[id].map { session in
      ReplicaStatus.Peer(
        session: id, device: session.device, address: session.peer.address,
        isDialled: session.peer.isDialled,
        clockOffsetMilliseconds: session.clockOffsetMilliseconds,
        isExchanging: session.isExchanging)
    }
  }

  private func deviceStatus(_ certificate: Certificate) -> ReplicaStatus.Device {
    let id = certificate.device
    return ReplicaStatus.Device(
      id: id, name: certificate.name, issued: certificate.issued, isSelf: id == keys.id,
      isConnected: sessions.values.contains { $0.device == id },
      lastSeenMilliseconds: lastSeen[id], addresses: addresses[id] ?? [])
  }

  private mutating func storeStatus(_ identifier: StoreIdentifier) -> ReplicaStatus.Store? {
    guard var store = stores[identifier] else { return nil }
    let digest = store.digest()
    stores[identifier] = store
    let mismatches = sessions.values.filter { $0.mismatched.contains(identifier) }
    return ReplicaStatus.Store(
      identifier: identifier,
      usage: Usage(
        bytes: store.state.shownBytes, keys: store.state.shown.count, policy: store.policy),
      hiddenKeys: store.state.hiddenKeys.count, drafts: store.drafts.count,
      refusals: store.refusals.count, removals: store.state.removals.count,
      quarantined: store.quarantined, isProvisional: store.isProvisional, digest: digest,
      heldBy: holders(of: identifier).filter(\.value).keys.sorted(),
      policyMismatches: mismatches.compactMap(\.device).sorted())
  }
}
