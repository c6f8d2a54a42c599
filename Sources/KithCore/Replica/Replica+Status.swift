internal import KithCrypto

extension Replica {
  /// Empty if the store is not open.
  ///
  /// - Complexity: O(*n*) in the keys shown.
  package func view(of identifier: StoreIdentifier) -> [Key: EncodedValue] {
    stores[identifier]?.state.shown.mapValues(\.value) ?? [:]
  }

  /// Nil if the store is not open.
  package func usage(of identifier: StoreIdentifier) -> Usage? {
    stores[identifier].map { store in
      Usage(
        bytes: store.state.shownBytes, keys: store.state.shown.count, policy: store.policy)
    }
  }

  package func hiddenEntries(of identifier: StoreIdentifier) -> [HiddenEntry] {
    stores[identifier]?.state.hiddenEntries ?? []
  }

  /// Oldest first.
  package func refusals(of identifier: StoreIdentifier) -> [Refusal] {
    Array(stores[identifier]?.refusals.refusals ?? [])
  }

  package var storeIdentifiers: [StoreIdentifier] { stores.keys.sorted() }

  /// Whether damaged data of a store is still missing, and nobody has accepted the loss.
  package func isLacking(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.isLacking == true
  }

  package func hasUnpublished(_ identifier: StoreIdentifier) -> Bool {
    stores[identifier]?.drafts.isEmpty == false
  }

  /// Whether each other member is known to have all that this device published. None is while this
  /// device is below the store's horizon.
  package func holders(of identifier: StoreIdentifier) -> [DeviceID: Bool] {
    guard let store = stores[identifier] else { return [:] }
    let own = store.log.vector.filter { $0.key.device == keys.id }
    var holders: [DeviceID: Bool] = [:]
    for member in roster.sortedMembers where member.device != keys.id {
      holders[member.device] =
        !store.horizon.isBelow && coverage.covers(own, of: identifier, member.device)
    }
    return holders
  }

  /// How many change sets this device covers that the other is not known to cover. Stores whose
  /// coverage the other never sent are left out. Below the horizon vectors alone prove nothing.
  ///
  /// - Complexity: O(*c*) in the chains.
  package func behind(_ device: DeviceID) -> [StoreIdentifier: UInt64] {
    var behind: [StoreIdentifier: UInt64] = [:]
    for (identifier, store) in stores {
      behind[identifier] = coverage.lacking(store.log.vector, of: identifier, device)
        .map { store.horizon.isBelow ? max(1, $0) : $0 }
      if storesLeftOut[device]?.there.contains(identifier) == true {
        // Its drafts are not even published.
        behind[identifier] = max(1, store.log.vector.values.reduce(0, +))
      }
    }
    return behind
  }

  /// Its version of Kith; nil if it sent none since the start.
  package func software(of device: DeviceID) -> String? {
    let software = contacts.meetings[device]?.handshake?.software ?? ""
    return software.isEmpty ? nil : software
  }

  /// The device's clock minus ours, at the last handshake since the start.
  package func clockOffsetMilliseconds(of device: DeviceID) -> Int64? {
    contacts.meetings[device]?.handshake?.clockOffsetMilliseconds
  }

  /// When the device was last seen, in milliseconds since 1970; nil if not since the start.
  package func lastSeenMilliseconds(of device: DeviceID) -> UInt64? {
    contacts.meetings[device]?.lastSeenMilliseconds
  }

  /// Whether a device was seen since it became a member: in a session, at an address or as an
  /// author. If not, it may have died while it joined.
  ///
  /// - Complexity: O(*c*) in the chains.
  package func wasSeen(_ device: DeviceID) -> Bool {
    device == keys.id || contacts.meetings[device] != nil
      || contacts.addresses[device]?.isEmpty == false
      || stores.values.contains { store in
        store.log.vector.keys.contains { $0.device == device }
      }
  }

  package var memberAddresses: [DeviceID: [String]] {
    contacts.addresses.filter { roster.isMember($0.key) && !$0.value.isEmpty }
  }

  /// This replica's part of the status; the node adds the rest.
  ///
  /// - Complexity: O(*d* · *c*) in devices and chains, and O(*n*) in the keys of changed stores.
  package mutating func status() -> NodeStatus {
    var status = NodeStatus(account: roster.account, device: keys.id)
    status.carrierPlace = carrierKeys?.place
    let known = roster.sortedMembers.map(\.device) + roster.sortedRevoked
    status.devices = known.sorted().compactMap(deviceStatus)
    let vectors = stores.mapValues(\.log.vector)
    for (index, device) in status.devices.enumerated()
    where device.isMember && !device.isThisDevice {
      status.devices[index].behindSinceMilliseconds = coverage.lag(
        of: device.id, behind: vectors, at: now.wallMilliseconds)
    }
    status.peers = links.keys.sorted().filter { links[$0]?.joiner == nil }
      .compactMap(peerStatus)
    let ownBytes = stores.values.reduce(0) { $0 + $1.log.weights[keys.id] }
    status.stores = stores.keys.sorted().compactMap { storeStatus($0, ownBytes: ownBytes) }
    status.isRevoked = isRevoked
    status.hasNoIncarnations = hasNoIncarnations
    status.keepsHistory = keepsHistory
    status.clock = clockStatus
    status.counters = counters
    return status
  }

  var clockStatus: NodeStatus.Clock { NodeStatus.Clock(timeKeeper, clockDifferences) }

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
    device.wasSeen = wasSeen(id)
    device.addresses = contacts.addresses[id] ?? []
    if device.isThisDevice {
      device.software = Software.version
    } else {
      device.behind = behind(id).mapValues(\.asSigned)
      device.storesRejectedThere = storesLeftOut[id]?.there ?? []
      device.storesRejectedHere = storesLeftOut[id]?.here ?? []
      device.software = software(of: id)
      device.clockOffsetMilliseconds = clockOffsetMilliseconds(of: id)
    }
    return device
  }

  /// `ownBytes`: of this device's change sets, in all stores.
  private mutating func storeStatus(
    _ identifier: StoreIdentifier, ownBytes: Int
  ) -> NodeStatus.Store? {
    guard var store = stores[identifier], let usage = usage(of: identifier) else { return nil }
    var status = NodeStatus.Store(identifier: identifier, usage: usage)
    status.digest = store.digest().hex
    stores[identifier] = store
    status.hiddenKeys = store.state.hiddenKeys.count
    status.drafts = store.drafts.count
    status.refusals = store.refusals.refusals.count
    status.lastRefusal = store.refusals.lastNumber
    status.removals = store.state.removals.count
    status.removalsUnseenBy = removalsUnseen(in: store)
    status.isBelowHorizon = store.horizon.isBelow
    status.quarantined = store.quarantined
    status.authorsOverLimit = store.reportedOverLimit.sorted()
    status.isOpenedHere = store.isUsedHere
    status.isOverLimit =
      store.log.weights[keys.id] > AuthorBudget.most(beside: ownBytes, in: store, of: keys.id)
    status.missing = store.missing
    status.upToDateDevices = holders(of: identifier).filter(\.value).keys.sorted()
    status.policyMismatches = links.values.filter { $0[identifier].isMismatched }
      .compactMap(\.device).sorted()
    return status
  }
}

extension Replica {
  /// The members that were not known to cover a forgotten removal, or lack half of as many as a
  /// store keeps. Nobody has those that wait to be published; a device whose coverage is not known
  /// may have all others.
  fileprivate func removalsUnseen(in store: StoreReplica) -> [DeviceID] {
    let unseen = store.horizon.unseen
    let waiting = store.state.drafted.values.count(where: \.entry.isRemoval)
    let locations = store.state.removals.compactMap {
      store.state.slots[$0]?.newest.location?.changeSet
    }
    return roster.sortedMembers.map(\.device).filter { device in
      if unseen.contains(device) { return true }
      guard device != keys.id, (waiting + locations.count) * 2 >= removalLimit else { return false }
      let isKnown = coverage.lacking([:], of: store.identifier, device) != nil
      let covered = coverage.covered(by: device, of: store.identifier)
      let lacking = isKnown ? locations.count { $0.sequence > covered[$0.chain] ?? 0 } : 0
      return (waiting + lacking) * 2 >= removalLimit
    }
  }
}

// MARK: Carriers

extension Replica {
  /// Adds what this replica knows of a carrier.
  ///
  /// - Complexity: O(*o* · *c*) in its objects and their chains.
  package func describe(_ carrier: inout NodeStatus.Carrier, _ id: CarrierID) {
    guard let known = carriers[id] else { return }
    carrier.listedMilliseconds = known.listedMilliseconds
    carrier.heldSinceMilliseconds = heldSince(on: id).map { known.heldSince ?? $0 }
    carrier.waitsForTime = !timeKeeper.isCertain && stores.values.contains { !$0.drafts.isEmpty }
    carrier.count(known, timeKeeper)
  }

  /// The carriers of which objects are known, or that are attached.
  package var carrierIDs: Set<CarrierID> { Set(carriers.keys) }

  /// When the last listing came, if it showed all that this device covers and has written, of all
  /// stores or of one.
  package func heldSince(
    on id: CarrierID, _ identifier: StoreIdentifier? = nil
  ) -> UInt64? {
    guard let carrier = carriers[id], keyring.current != nil else { return nil }
    let meant = identifier.map { name in stores.filter { $0.key == name } } ?? stores
    guard meant.values.allSatisfy({ $0.drafts.isEmpty && !$0.horizon.isBelow }),
      carrier.holds(meant.keys, in: carrierReader([:]))
    else { return nil }
    return carrier.listedMilliseconds
  }

  /// Whether stores are exchanged with one of these devices now.
  package func isConnected(to devices: [DeviceID]) -> Bool {
    links.values.contains { link in
      link.isExchanging && link.device.map(devices.contains) == true
    }
  }

  /// The bytes of an object, as the last listing that showed it said.
  package func listedBytes(of name: ObjectName, on id: CarrierID) -> Int? {
    carriers[id]?.objects[name]?.bytes
  }

  /// Whether a turn is under way, or one is asked for.
  package func isBusy(with id: CarrierID) -> Bool {
    guard let carrier = carriers[id] else { return false }
    if case .idle = carrier.phase { return carrier.isAsked && usesCarriers }
    return true
  }
}

extension UInt64 {
  /// At most the largest number of a property list; a peer may tell any.
  fileprivate var asSigned: UInt64 { Swift.min(self, UInt64(Int64.max)) }
}
