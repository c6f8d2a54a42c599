internal import KithCore
internal import KithCrypto

/// Checks of the objects that devices put on carriers, and of their status of carriers.
extension Simulation {
  /// All that an object says is committed before it is put. It shows nothing, not even a repetition.
  func checkPut(
    _ sealed: [UInt8], as name: ObjectName, by device: SimulatedDevice, on carrier: CarrierNumber
  ) throws(Violation) {
    trace.note("put", [UInt64(device.number), UInt64(sealed.count)], at: now)
    trace.note(bytes: sealed)
    if Self.holdsSecret(sealed) {
      throw Violation(.secrecy, "\(device.name) put a key or a value in plaintext")
    }
    if let other = carriers[carrier].objectThatShares(sealed, of: name) {
      throw Violation(.secrecy, "the objects \(name) and \(other) share 16 bytes")
    }
    guard let replica = device.replica,
      let facts = open(sealed, named: name, with: replica.objectOpener).facts
    else { throw Violation(.bounds, "\(device.name) put an object that does not open") }
    latestPutMilliseconds = max(latestPutMilliseconds, replica.hybridClock.milliseconds)
    guard !device.isTraitor else { return }
    let disk = device.disk.durable
    for message in facts.messages { try checkSent(message, [], by: device, needsSync: true) }
    for (store, said) in facts.stores {
      try checkSent(said.through, of: store, disk, by: device)
    }
  }

  /// A device that says that all is on a carrier is right: another that has nothing gets all of it
  /// there, unless the storage itself lost or changed something since then.
  func checkHeld(by device: SimulatedDevice, on carrier: CarrierNumber) throws(Violation) {
    let id = carriers[carrier].id
    guard let replica = device.replica, replica.heldSince(on: id) != nil,
      isSound(carrier, for: device)
    else { return }
    var vectors: [StoreIdentifier: [ChainID: UInt64]] = [:]
    for store in replica.storeIdentifiers { vectors[store] = replica.covered(of: store) }
    let check = SimulatedDevice.HeldCheck(
      vectors: vectors, changes: carriers[carrier].changes,
      revocations: revocations(in: replica.roster))
    guard device.checkedHeld[carrier] != check,
      isHealing || Int.random(in: 0..<3, using: &carrierChance) == 0
    else { return }
    tally.count("carriers read from nothing")
    guard let theirs = coverage(of: carrier, for: device) else { return }
    if let (store, words) = gap(from: vectors, to: theirs, on: carrier, device) {
      throw Violation(
        .convergence,
        "\(device.name) says that carrier \(carrier) has all of \(store), and a new device lacks "
          + words)
    }
    device.checkedHeld[carrier] = check
  }

  /// A deletion takes nothing from those that have nothing: `before` is what they would have got.
  func checkDeleted(
    _ before: [StoreIdentifier: [ChainID: UInt64]], by device: SimulatedDevice,
    on carrier: CarrierNumber
  ) throws(Violation) {
    tally.count("deletions checked")
    guard let after = coverage(of: carrier, for: device),
      let (store, words) = gap(from: before, to: after, on: carrier, device)
    else { return }
    throw Violation(
      .convergence,
      "\(device.name) deleted from carrier \(carrier) what nothing else there has of \(store): "
        + words)
  }

  /// Nil where ``checkDeleted(_:by:on:)`` would prove nothing: an hour of a clock that steps is none,
  /// and a liar's object may say that it brings what it does not.
  func coverageBeforeDeletion(
    by device: SimulatedDevice, on carrier: CarrierNumber
  ) -> [StoreIdentifier: [ChainID: UInt64]]? {
    guard faults.isDisjoint(with: [.clockStep, .farClock]),
      !devices.contains(where: \.isTraitor), isSound(carrier, for: device)
    else { return nil }
    return coverage(of: carrier, for: device)
  }

  /// Whether what others get from the carrier is up to the members: the storage did nothing to it
  /// lately, and the device is neither a liar nor out.
  private func isSound(_ carrier: CarrierNumber, for device: SimulatedDevice) -> Bool {
    guard let replica = device.replica, !device.isTraitor, !isLeftBehind(device, replica.roster),
      !carriers[carrier].holdsDamaged
    else { return false }
    // A listing may be an hour old.
    return carriers[carrier].spoiltAt.map { $0 + 3_900_000_000 <= now } ?? true
  }

  /// Returns the coverage of a new device after it read the carrier; nil if an object put after the
  /// last listing tells of a revocation. Then the revoked device's objects count no more, until
  /// another puts their content again.
  private func coverage(
    of carrier: CarrierNumber, for device: SimulatedDevice
  ) -> [StoreIdentifier: [ChainID: UInt64]]? {
    guard let roster = device.replica?.roster, let fresh = freshReader(of: carrier, for: device),
      revocations(in: roster) == revocations(in: fresh.roster)
    else { return nil }
    // It may have published removals of its own meanwhile.
    return Dictionary(
      uniqueKeysWithValues: stores.map { store in
        (store, fresh.covered(of: store).filter { $0.key != fresh.ownChain })
      })
  }

  private func revocations(in roster: Roster) -> Int {
    devices.count { roster.isRevoked($0.keys.id) }
  }

  /// The first store of which less is covered, and what.
  private func gap(
    from wanted: [StoreIdentifier: [ChainID: UInt64]],
    to found: [StoreIdentifier: [ChainID: UInt64]], on carrier: CarrierNumber,
    _ device: SimulatedDevice
  ) -> (StoreIdentifier, String)? {
    for (store, vector) in wanted.sorted(by: { $0.key < $1.key }) where !flooded.contains(store) {
      let theirs = found[store] ?? [:]
      let lacking = vector.filter {
        $0.value > theirs[$0.key] ?? 0 && device.replica?.roster.isRevoked($0.key.device) != true
      }
      guard !lacking.isEmpty, !leavesOut(store, on: carrier, device) else { continue }
      let words = lacking.sorted { $0.key < $1.key }.map { chain, sequence in
        let author = devices.first { $0.keys.id == chain.device }?.name ?? "nobody"
        return "\(sequence) of \(author) (it has \(theirs[chain] ?? 0))"
      }
      return (store, words.joined(separator: ", "))
    }
    return nil
  }

  /// Whether a device is revoked, or a member only through one that is. It may not know that yet, and
  /// cannot open what replaced the objects that it listed.
  private func isLeftBehind(_ device: SimulatedDevice, _ roster: Roster) -> Bool {
    revoked.contains(device.keys.id)
      || revoked.contains { roster.dependents(of: $0).contains(device.keys.id) }
  }

  /// Whether another device's limits for a store can be in an object that this one has not listed.
  ///
  /// A listing may be an hour old. Meanwhile another device may replace the objects in it by its own.
  /// A reader leaves a store out that has other limits there than its own.
  private func leavesOut(
    _ store: StoreIdentifier, on carrier: CarrierNumber, _ device: SimulatedDevice
  ) -> Bool {
    guard let deletedAt = carriers[carrier].deletedAt, deletedAt + 3_900_000_000 > now else {
      return false
    }
    let policy = device.replica?.inspect(store)?.policy
    return devices.contains { other in
      [other.opened[store], other.replica?.inspect(store)?.policy].contains {
        $0 != nil && $0 != policy
      }
    }
  }

  /// A device with the same keys and nothing else, after it read all objects.
  private func freshReader(
    of carrier: CarrierNumber, for device: SimulatedDevice
  ) -> Replica? {
    guard let roster = device.replica?.roster,
      var fresh = try? Replica(
        account: account, keys: device.keys, snapshot: Founder.snapshot(roster),
        process: device.process, entropy: carrierChance)
    else { return nil }
    // A wrong clock put what only wrong clocks take in: this one is the latest that put anything.
    var instant = device.clock.instant(at: now)
    instant.wallMilliseconds = max(instant.wallMilliseconds, latestPutMilliseconds)
    var inputs: [Input] = [
      .start(isCopy: true), .clockStatus(isSynchronised: true),
    ]
    for store in stores {
      if let policy = device.replica?.inspect(store)?.policy { inputs.append(.open(store, policy)) }
    }
    inputs.append(.carrier(carriers[carrier].id, .attached(shortestMilliseconds: 5_000)))
    // An object may wait for another that comes in a later turn; a flood takes many.
    var turnsLeft = 2
    var covered: [[ChainID: UInt64]] = []
    inputs.reverse()
    while let input = inputs.popLast() {
      for case .carrier(let id, let order) in fresh.handle(input, at: instant) {
        switch order {
        case .list: inputs.insert(.carrier(id, .listed(carriers[carrier].sizes)), at: 0)
        case .get(let names):
          for name in names {
            let bytes = carriers[carrier].objects[name]
            let opened = bytes.map { open($0, named: name, with: fresh.objectOpener) }
            inputs.insert(.carrier(id, .got(name, opened)), at: 0)
          }
        case .put, .delete: inputs.insert(.carrier(id, .failed(retryAfterMilliseconds: nil)), at: 0)
        case .rest: break
        }
      }
      guard inputs.isEmpty else { continue }
      let vectors = stores.map { fresh.covered(of: $0) }
      if vectors != covered { (covered, turnsLeft) = (vectors, 2) }
      if turnsLeft > 0 {
        turnsLeft -= 1
        inputs.append(.carrier(carriers[carrier].id, .asked))
      }
    }
    return fresh
  }

  // MARK: The end

  /// Each network has a device on the first carrier, so that all can meet.
  func joinNetworks() throws(Violation) {
    guard setup.carriers != nil else { return }
    let live = devices.filter { !$0.isGone && $0.original == nil }
    guard Set(live.map(\.network)).count > 1 else { return }
    for network in Set(live.map(\.network)).sorted() {
      let near = live.filter { $0.network == network }
      // Others may not know a device that a revoked one invited: it can pass nothing on.
      let firm = near.filter { device in !revoked.contains { isInvited(device, by: $0) } }
      let relays = firm.isEmpty ? near : firm
      guard !relays.contains(where: { $0.carriers.contains(0) }), let first = relays.first else {
        continue
      }
      first.carriers.insert(0, at: 0)
      if first.isRunning { try attachCarriers(of: first) }
    }
  }

  /// Devices that have converged become quiet, say that their carriers have everything, and leave
  /// few objects.
  func demandQuiet() throws(Violation) {
    guard setup.carriers != nil else { return }
    let start = now
    let hour: UInt64 = 3_600_000_000
    while let since = carriers.map(\.usedAt).max(), now < max(since, start) + 2 * hour {
      guard now < start + 24 * hour else {
        throw Violation(.bounds, "devices put and delete objects without end")
      }
      try pass(until: now + hour / 4)
      // A device's revocation may lie on a carrier until now, if the one that signed it is gone. A
      // revoked device that nobody tells puts its state again each time that members delete it.
      retireRevoked()
    }
    tally.count("hours until carriers were quiet", Int((now - start) / hour) - 2)
    let all = devices.filter { !$0.isGone }
    let known = flooded.isEmpty ? stores.filter { !lacksWitness(all, of: $0) } : []
    for device in all {
      for number in device.carriers {
        let id = carriers[number].id
        if known.contains(where: { device.replica?.heldSince(on: id, $0) == nil }) {
          throw Violation(
            .convergence, "\(device.name) never says that carrier \(number) has everything")
        }
      }
    }
    // Liars' and thieves' objects may stay, and all on a carrier that nobody uses any more: two
    // devices that revoked each other may have been its only ones.
    let most = devices.contains(where: \.isTraitor) ? 64 : 24 + 2 * devices.count
    for number in Set(all.flatMap(\.carriers)).sorted() {
      let objects = objects(on: number)
      tally.count("objects left", objects)
      guard objects <= most else {
        throw Violation(.bounds, "\(objects) objects stay on carrier \(number)")
      }
    }
    if let gap = convergenceGap() {
      throw Violation(.convergence, "after carriers became quiet: \(gap)")
    }
  }

  /// The objects on a carrier, without pieces of others.
  private func objects(on carrier: CarrierNumber) -> Int {
    let reader = devices.lazy.filter(\.isRunning).compactMap(\.replica).first
    return carriers[carrier].objects.count { name, bytes in
      reader.flatMap { open(bytes, named: name, with: $0.objectOpener).facts }?.isPiece != true
    }
  }
}
