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

  /// Whether a part of a store was damaged in storage, which no device has given back yet, and whose
  /// loss nobody has accepted.
  public func isLacking(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.isLacking == true
  }

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

  /// Of every store that both know, how many change sets of those that this device covers another is
  /// not known to cover; stores of which nothing was heard are left out.
  ///
  /// - Complexity: O(*c*) in the chains.
  public func behind(_ device: DeviceID) -> [StoreIdentifier: UInt64] {
    var behind: [StoreIdentifier: UInt64] = [:]
    for (identifier, store) in stores {
      guard let known = knowledge[device]?[identifier] else { continue }
      behind[identifier] = store.log.vector.reduce(0) { sum, chain in
        sum + chain.value - min(chain.value, known[chain.key] ?? 0)
      }
    }
    return behind
  }

  /// What a device said of its version of Kith when it was met since the start; nil where it was not,
  /// or did not say.
  public func software(of device: DeviceID) -> String? {
    heard[device].flatMap { $0.software.isEmpty ? nil : $0.software }
  }

  /// A device's clock less ours, in milliseconds, when it was met last since the start.
  public func clockOffsetMilliseconds(of device: DeviceID) -> Int64? {
    heard[device]?.clockOffsetMilliseconds
  }

  /// When a device was met last since the start, in milliseconds since 1970.
  public func lastSeenMilliseconds(of device: DeviceID) -> UInt64? { lastSeen[device] }

  /// Whether anything was ever heard of a device since it became a member: from itself, or from others
  /// that met it. One that never was may have died on its way into the account.
  ///
  /// - Complexity: O(*c*) in the chains.
  public func wasHeard(_ device: DeviceID) -> Bool {
    device == keys.id || lastSeen[device] != nil || addresses[device]?.isEmpty == false
      || stores.values.contains { store in
        store.log.vector.keys.contains { $0.device == device }
      }
  }

  /// What this replica knows of itself and its peers.
  public mutating func status() -> ReplicaStatus {
    ReplicaStatus(
      peers: sessions.keys.sorted().filter { sessions[$0]?.joiner == nil }.compactMap(peerStatus),
      devices: roster.sortedMembers.map(deviceStatus),
      stores: stores.keys.sorted().compactMap { storeStatus($0) },
      isRevoked: isRevoked, clock: clockStatus, isBarren: isBarren, counters: counters)
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
      id: id, name: roster.name(of: id) ?? certificate.name, issued: certificate.issued,
      isSelf: id == keys.id,
      isConnected: sessions.values.contains { $0.device == id },
      lastSeenMilliseconds: lastSeen[id], wasHeard: wasHeard(id), addresses: addresses[id] ?? [])
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
      quarantined: store.quarantined, missing: store.missing, digest: digest,
      heldBy: holders(of: identifier).filter(\.value).keys.sorted(),
      policyMismatches: mismatches.compactMap(\.device).sorted())
  }
}
