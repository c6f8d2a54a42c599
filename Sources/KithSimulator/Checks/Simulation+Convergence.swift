internal import KithCore
internal import KithCrypto

/// The end of a phase: all faults end, and all devices must show the same.
extension Simulation {
  /// Virtual seconds: two full `Have`s of 30 s, and as many for each hop if not all are connected.
  var convergenceSeconds: UInt64 {
    if setup.carriers != nil { return 12 * 3_600 }
    return isMesh ? 120 : 300
  }

  private var stepMicroseconds: UInt64 { setup.carriers == nil ? 1_000_000 : 15_000_000 }

  func heal() throws(Violation) {
    isHealing = true
    for pair in blocked.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
      queue.add(
        .rejoin(pair[0], pair[1]), at: now + UInt64.random(in: 0...5_000_000, using: &nemesisChance)
      )
    }
    for device in devices { try heal(device) }
    retireRevoked()
    try joinNetworks()
    hurry()
    for device in devices where device.isRunning {
      for store in stores { try open(store, under: policy(), on: device) }
    }
  }

  private func heal(_ device: SimulatedDevice) throws(Violation) {
    guard !device.isGone else { return }
    device.bytesPerSecond = nil
    device.fuse = nil
    device.syncEnd = .succeeds
    device.disk.setFull(false)
    resume(device)
    device.clock.mend(at: now)
    device.isClockSynchronised = true
    if device.original != nil {
      // The person ends the copy.
      tally.count("clones ended")
      return giveUp(device)
    }
    // A clock further ahead than this heals; data less far ahead is accepted in time. A device
    // whose disk fails may have healed only in memory, and goes back to the clock on disk; one whose
    // process ended goes on with what it wrote, and may have sent it before it was synced.
    // A later generation may have an earlier time.
    let disk = device.disk
    let clocks = [disk.durable.clock, disk.written.clock, device.replica?.hybridClock ?? .zero]
    let latest = clocks.map(\.milliseconds).max() ?? 0
    let ahead = min(Int64(latest) - trueMilliseconds, 610_000)
    if ahead > 0 { clockExcess = max(clockExcess, UInt64(ahead) * 1_000) }
    for store in stores { device.opened[store] = policy() }
    guard device.isRunning else {
      let moment = now + UInt64.random(in: 0...2_000_000, using: &nemesisChance)
      return queue.add(.start(device.number, life: device.life), at: moment)
    }
    try hand(.clockStatus(isSynchronised: true), to: device)
  }

  private var trueMilliseconds: Int64 { Int64(HostClock.origin) + Int64(now / 1_000) }

  func demandConvergence() throws(Violation) {
    let start = now
    // Space on a full disk is noticed only after the longest retry.
    let retry = devices.contains(where: \.isFailing) ? Shell.longestRetryMilliseconds * 1_000 : 0
    let limit = convergenceSeconds * 1_000_000 + clockExcess + retry
    var gap = convergenceGap()
    while let found = gap {
      guard now - start < limit else {
        throw Violation(
          .convergence, "\((now - start) / 1_000_000) s after the last fault: \(found)")
      }
      try pass(until: now + stepMicroseconds)
      retireRevoked()
      try joinNetworks()
      gap = convergenceGap()
    }
    clockExcess = 0
    tally.longestConvergence = max(tally.longestConvergence, now - start)
    tally.count("convergences")
    for device in devices where device.isRunning {
      for store in stores { try takeRefusals(on: device, of: store) }
    }
    try pass(until: now + 1_000_000)
    try checkEnd()
    try demandQuiet()
  }

  func convergenceGap() -> String? {
    let all = devices.filter { !$0.isGone }
    for device in all {
      guard device.isRunning, !device.isFailing, let replica = device.replica else {
        return "\(device.name) does not run"
      }
      if device.join != nil { return "\(device.name) joins still" }
      if replica.adoptingStores != [] { return "\(device.name) still adopts" }
    }
    guard let first = all.first else { return nil }
    for store in stores where !flooded.contains(store) {
      guard let wanted = first.replica?.inspect(store) else { return "\(store) is not there" }
      let digest = first.shell?.replica.digest(of: store)
      for device in all {
        guard let seen = device.replica?.inspect(store) else {
          return "\(device.name) does not know \(store)"
        }
        if seen.policy != wanted.policy { return "\(device.name) has other limits for \(store)" }
        // A device alone publishes nothing.
        if !seen.drafts.isEmpty && all.count > 1 { return "\(device.name) has drafts in \(store)" }
        if seen.covered != wanted.covered {
          return "\(device.name) and \(first.name) cover different change sets of \(store)"
        }
        if device.shell?.replica.digest(of: store) != digest {
          return "the digests of \(device.name) and \(first.name) differ in \(store): "
            + (seen.difference(from: wanted) ?? "but not what they keep")
        }
        if device.views[store] ?? [:] != first.views[store] ?? [:] {
          return "\(device.name) and \(first.name) show different things in \(store)"
        }
      }
    }
    return knowledgeGap(all)
  }

  /// Whether all are below the store's horizon, and only a member that is gone for good could say
  /// what was removed: they wait for it until somebody revokes it.
  func lacksWitness(_ all: [SimulatedDevice], of store: StoreIdentifier) -> Bool {
    let present = Set(all.map(\.keys.id))
    return all.allSatisfy { device in
      device.replica?.inspect(store)?.isBelowHorizon == true
        && device.replica?.holders(of: store).keys.contains { !present.contains($0) } == true
    }
  }

  /// Returns a device that has everything, but is not known to.
  private func knowledgeGap(_ all: [SimulatedDevice]) -> String? {
    for device in all {
      for store in stores where !flooded.contains(store) && !lacksWitness(all, of: store) {
        let missing = device.replica?.holders(of: store).filter { !$0.value }.keys ?? [:].keys
        if let other = all.first(where: { missing.contains($0.keys.id) }) {
          return "\(device.name) does not know that \(other.name) has what it published in \(store)"
        }
      }
    }
    return nil
  }

  // MARK: After convergence

  private func checkEnd() throws(Violation) {
    let all = devices.filter { $0.isRunning }
    var states: [StoreIdentifier: [StoreInspection]] = [:]
    let (history, reference) = (history, reference)
    let liars = Set(devices.filter(\.isTraitor).map(\.keys.id))
    var isForgotten: ((Stamp, Key, StoreIdentifier) -> Bool)?
    if setup.removalLimit != nil {
      isForgotten = {
        reference.isSuperseded($0, of: $1, in: $2) || history.removes($1, after: $0, in: $2)
          || !liars.isEmpty && reference.isRemovedAgain($0, of: $1, in: $2)
      }
    }
    for store in stores where !flooded.contains(store) {
      for device in all {
        guard let seen = device.replica?.inspect(store) else { continue }
        if let difference = reference.difference(
          seen, in: store, liars: liars, isForgotten: isForgotten)
        {
          throw Violation(.convergence, "\(device.name), \(store): \(difference)")
        }
        states[store, default: []].append(seen)
      }
    }
    // Devices may keep different things of a flooded store.
    let loss = history.loss(
      in: states, seenRefusals: { device, store in devices[device].seenRefusals[store] ?? [] },
      isCovered: { stamp, operation, store in
        states[store]?.first.map { reference.isCovered(stamp, operation, by: $0, in: store) }
          ?? false
      },
      isForgotten: isForgotten)
    if let loss { throw Violation(.nothingLost, loss) }
    for device in all {
      guard let counters = device.replica?.counted else { continue }
      if counters.damaged > 0 { throw Violation(.nothingLost, "\(device.name): damaged items") }
      guard liars.isEmpty else { continue }
      // Forks, and networks worse than TCP, may announce coverage before the superseding entry.
      // Devices have noticed and repaired both by now.
      let mayDiverge = !faults.isDisjoint(with: [
        .clone, .restore, .silentLoss, .reordering,
      ])
      if counters.rejected > 0 || counters.quarantined > 0
        || counters.divergences > 0 && !mayDiverge
      {
        throw Violation(.convergence, "\(device.name) found fault with honest devices: \(counters)")
      }
    }
  }

  func checkDisks() throws(Violation) {
    for device in devices where device.isRunning {
      // The shown values may be ahead of the disk, as long as a commit takes.
      for _ in 0..<1_000 where device.shell?.isBusy == true || device.shell?.hasWork == true {
        try pass(until: now + 10_000)
      }
      guard let snapshot = try? device.disk.load(),
        var again = try? Replica(
          account: account, keys: device.keys, snapshot: snapshot, process: device.process,
          entropy: keyChance)
      else { throw Violation(.nothingLost, "\(device.name)'s disk gives no replica") }
      // `again` was not started, so it has no drafts in its view: skip stores with drafts.
      for store in stores
      where !flooded.contains(store) && device.replica?.hasUnpublished(store) == false {
        let (found, wanted) = (again.inspect(store), device.replica?.inspect(store))
        let difference: String? =
          if found?.covered != wanted?.covered {
            "covers other change sets"
          } else if found?.shown != wanted?.shown {
            "shows something else"
          } else if again.digest(of: store) != device.shell?.replica.digest(of: store) {
            "has another digest"
          } else if again.keptHistory(of: store) != device.replica?.keptHistory(of: store) {
            "keeps other past values"
          } else {
            nil
          }
        guard let difference else { continue }
        throw Violation(
          .nothingLost,
          "the replica that \(device.name)'s disk gives \(difference) in \(store)"
        )
      }
    }
  }
}

extension StoreInspection {
  /// The first differing key, and what both keep.
  fileprivate func difference(from other: StoreInspection) -> String? {
    for key in Set(slots.keys).union(other.slots.keys).sorted() {
      let (mine, theirs) = (slots[key] ?? [], other.slots[key] ?? [])
      guard mine.map(\.digest) != theirs.map(\.digest) else { continue }
      return "of \(key), \(Self.text(mine)) and \(Self.text(theirs))"
    }
    return nil
  }

  private static func text(_ kept: [Kept]) -> String {
    kept.isEmpty
      ? "nothing"
      : kept.map {
        "\($0.entry.isRemoval ? "removal" : "value") \($0.entry.stamp) of \($0.changeSet)"
      }.joined(separator: ", ")
  }
}
