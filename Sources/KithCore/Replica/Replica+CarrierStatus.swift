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

  /// Whether a turn is under way, or one is asked for.
  package func isBusy(with id: CarrierID) -> Bool {
    guard let carrier = carriers[id] else { return false }
    if case .idle = carrier.phase { return carrier.isAsked && usesCarriers }
    return true
  }
}
