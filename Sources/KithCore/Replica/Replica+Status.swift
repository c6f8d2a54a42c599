internal import KithCrypto

extension Replica {
  /// The values that a store shows, by key. Empty if the store is not open.
  ///
  /// - Complexity: O(*n*) in the keys shown.
  package func view(of identifier: StoreIdentifier) -> [Key: EncodedValue] {
    stores[identifier]?.state.shown.mapValues(\.value) ?? [:]
  }

  /// The part of its policy that a store uses; nil if the store is not open.
  package func usage(of identifier: StoreIdentifier) -> Usage? {
    stores[identifier].map { store in
      Usage(
        bytes: store.state.shownBytes, keys: store.state.shown.count, policy: store.policy)
    }
  }

  /// Newest writes that the quota does not show, by key.
  package func hiddenEntries(of identifier: StoreIdentifier) -> [HiddenEntry] {
    guard let state = stores[identifier]?.state else { return [] }
    return state.hiddenKeys.compactMap { key in
      guard let entry = state.slot(key)?.newest.entry, let encoded = entry.value,
        let value = try? encoded.decoded()
      else { return nil }
      return HiddenEntry(
        key: key.text, value: value, bytes: encoded.size, device: entry.stamp.device,
        writtenMilliseconds: entry.stamp.clock.milliseconds)
    }
  }

  /// Refusals that the program has not taken, oldest first.
  package func refusals(of identifier: StoreIdentifier) -> [Refusal] {
    stores[identifier]?.refusals.refusals ?? []
  }

  /// Stores of the account that this node knows, in order.
  package var storeIdentifiers: [StoreIdentifier] { stores.keys.sorted() }

  /// Whether a part of a store was damaged in storage, which no device has given back yet, and whose
  /// loss nobody has accepted.
  package func isLacking(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.isLacking == true
  }

  /// Whether local transactions of a store wait to be published.
  package func hasUnpublished(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.drafts.isEmpty == false
  }

  /// Of every other member, whether it is known to have everything that this device published.
  package func holders(of identifier: StoreIdentifier) -> [DeviceID: Bool] {
    guard let store = stores[identifier] else { return [:] }
    let own = store.log.vector.filter { $0.key.device == keys.id }
    var holders: [DeviceID: Bool] = [:]
    for member in roster.sortedMembers where member.device != keys.id {
      holders[member.device] = coverage.covers(own, of: identifier, member.device)
    }
    return holders
  }

  /// For each store that both know: how many change sets this device covers that another is not
  /// known to cover. Stores of which nothing was heard are left out.
  ///
  /// - Complexity: O(*c*) in the chains.
  package func behind(_ device: DeviceID) -> [StoreIdentifier: UInt64] {
    var behind: [StoreIdentifier: UInt64] = [:]
    for (identifier, store) in stores where coverage.knows(device, of: identifier) {
      let known = coverage.covered(by: device, of: identifier)
      behind[identifier] = store.log.vector.reduce(0) { sum, chain in
        sum + chain.value - min(chain.value, known[chain.key] ?? 0)
      }
    }
    return behind
  }

  /// The version of Kith that a device told when it was met since the start; nil if it was not met,
  /// or did not tell.
  package func software(of device: DeviceID) -> String? {
    let software = coverage.meetings[device]?.hello?.software ?? ""
    return software.isEmpty ? nil : software
  }

  /// A device's clock less ours, in milliseconds, when it was met last since the start.
  package func clockOffsetMilliseconds(of device: DeviceID) -> Int64? {
    coverage.meetings[device]?.hello?.clockOffsetMilliseconds
  }

  /// When a device was met last since the start, in milliseconds since 1970.
  package func lastSeenMilliseconds(of device: DeviceID) -> UInt64? {
    coverage.meetings[device]?.lastSeenMilliseconds
  }

  /// Whether anything was ever heard of a device since it became a member: from itself, or from
  /// others that met it. A device that was never heard may have died while it joined.
  ///
  /// - Complexity: O(*c*) in the chains.
  package func wasHeard(_ device: DeviceID) -> Bool {
    device == keys.id || coverage.meetings[device] != nil
      || contacts.addresses[device]?.isEmpty == false
      || stores.values.contains { store in
        store.log.vector.keys.contains { $0.device == device }
      }
  }

  /// The addresses at which members may be met.
  package var memberAddresses: [DeviceID: [String]] {
    contacts.addresses.filter { roster.isMember($0.key) && !$0.value.isEmpty }
  }

  /// This replica's knowledge of itself, its peers and its stores; the node adds the rest.
  ///
  /// - Complexity: O(*d* · *c*) in devices and chains, and O(*n*) in the keys of changed stores.
  package mutating func status() -> NodeStatus {
    var status = NodeStatus(account: roster.account, device: keys.id)
    let known = roster.sortedMembers.map(\.device) + roster.sortedRevoked
    status.devices = known.sorted().compactMap(deviceStatus)
    status.peers = links.keys.sorted().filter { links[$0]?.joiner == nil }
      .compactMap(peerStatus)
    status.stores = stores.keys.sorted().compactMap { storeStatus($0) }
    status.isRevoked = isRevoked
    status.isBarren = isBarren
    status.clock = clockStatus
    status.counters = counters
    return status
  }

  private func peerStatus(_ id: SessionID) -> NodeStatus.Peer? {
    links[id].map { link in
      NodeStatus.Peer(
        device: link.device, address: link.peer.address, isDialled: link.peer.isDialled,
        clockOffsetMilliseconds: link.clockOffsetMilliseconds,
        isExchanging: link.isExchanging)
    }
  }

  private func deviceStatus(_ id: DeviceID) -> NodeStatus.Device? {
    guard let certificate = roster.certificate(of: id), let name = roster.name(of: id) else {
      return nil
    }
    var device = NodeStatus.Device(id: id, name: name)
    device.isThisDevice = id == keys.id
    device.isMember = roster.isMember(id)
    device.isConnected = links.values.contains { $0.device == id }
    device.enrolledMilliseconds = certificate.issued.asSigned
    device.enroller =
      roster.isCreator(id)
      ? .creation
      : roster.enroller(of: id).map { roster.isRecoveryKey($0) ? .recoveryKey : .device($0) }
    device.revocation = roster.revocation(of: id).map {
      NodeStatus.Revocation(revokers: $0.by, milliseconds: $0.issued.asSigned)
    }
    device.lastSeenMilliseconds = lastSeenMilliseconds(of: id)
    device.wasHeard = wasHeard(id)
    device.addresses = contacts.addresses[id] ?? []
    if device.isThisDevice {
      device.software = Software.version
    } else {
      device.behind = behind(id).mapValues(\.asSigned)
      device.software = software(of: id)
      device.clockOffsetMilliseconds = clockOffsetMilliseconds(of: id)
    }
    return device
  }

  private mutating func storeStatus(_ identifier: StoreIdentifier) -> NodeStatus.Store? {
    guard var store = stores[identifier], let usage = usage(of: identifier) else { return nil }
    var status = NodeStatus.Store(identifier: identifier, usage: usage)
    status.digest = store.digest().hex
    stores[identifier] = store
    status.hiddenKeys = store.state.hiddenKeys.count
    status.drafts = store.drafts.drafts.count
    status.refusals = store.refusals.refusals.count
    status.removals = store.state.removals.count
    status.quarantined = store.quarantined
    status.missing = store.missing
    status.heldBy = holders(of: identifier).filter(\.value).keys.sorted()
    status.policyMismatches = links.values.filter { $0[identifier].isMismatched }
      .compactMap(\.device).sorted()
    return status
  }
}

extension UInt64 {
  /// The number, or the largest that property lists hold; a peer may tell any.
  fileprivate var asSigned: UInt64 { Swift.min(self, UInt64(Int64.max)) }
}
