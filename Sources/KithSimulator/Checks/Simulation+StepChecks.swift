internal import KithCore
internal import KithCrypto

/// Checks of every device after each input that may have changed it.
extension Simulation {
  func checkStep(
    _ device: SimulatedDevice, _ input: Input, _ effects: [Effect]
  ) throws(Violation) {
    guard let replica = device.replica else { return }
    switch input {
    case .received, .carrier(_, .got): try checkBelieved(replica, on: device)
    default: break
    }
    for store in Self.touched(input, effects).sorted() {
      guard let seen = replica.inspect(store) else { continue }
      let label = "\(device.name), \(store)"
      try checkView(seen, device.views[store] ?? [:], label)
      try checkQuota(seen, label)
      try checkAdmission(seen, label)
      try checkGroups(seen, label)
      try checkBounds(seen, of: device, in: store, label)
      for kept in seen.slots.values.joined() {
        let isBeyond = kept.changeSet.sequence > seen.covered[kept.changeSet.chain] ?? 0
        reference.note(kept, in: store, by: device.number, isBeyond: isBeyond)
      }
      if seen.slots.count > seen.shown.count {
        tally.count("steps with something hidden or removed")
      }
    }
  }

  /// Devices cover all that others believe (`waitUntilSynced`, `status`), unless they lie. Without a
  /// session with the believer, unless they run twice, or were restored and have not said so to it.
  private func checkBelieved(
    _ replica: Replica, on device: SimulatedDevice
  ) throws(Violation) {
    let copied = Set(devices.compactMap(\.original))
    for other in devices where other.keys.id != device.keys.id && !other.isTraitor {
      let known = replica.knownProcesses(of: other.keys.id)
      let isTwice = other.original != nil || copied.contains(other.number)
      let isUnseen = other.processesSinceRestore?.isDisjoint(with: known.all) == true
      guard other.isRunning,
        known.session == other.process.shortName || !isTwice && !isUnseen
      else { continue }
      let id = SimulatedDevice.Belief(device: other.number, life: other.life)
      for store in stores {
        let believed = replica.believed(of: other.keys.id, in: store)
        // A running device's coverage only rises.
        guard !believed.isEmpty, device.checkedBeliefs[store]?[id] != believed else { continue }
        guard let theirs = other.replica else { continue }
        let covered = theirs.covered(of: store)
        // A device that knows of a revocation no longer covers the revoked device's data under its
        // name.
        let isTrue = believed.allSatisfy {
          $0.value <= covered[$0.key] ?? 0 || theirs.roster.isRevoked($0.key.device)
        }
        guard isTrue else {
          throw Violation(
            .convergence, "\(device.name) believes that \(other.name) covers more of \(store)")
        }
        device.checkedBeliefs[store, default: [:]][id] = believed
      }
    }
  }

  private static func touched(_ input: Input, _ effects: [Effect]) -> Set<StoreIdentifier> {
    var stores = Set<StoreIdentifier>()
    switch input {
    case .open(let store, _), .write(_, let store, _): stores.insert(store)
    default: break
    }
    for effect in effects {
      switch effect {
      case .view(let change): stores.insert(change.store)
      case .persist(let mutations): stores.formUnion(mutations.compactMap(\.key.store))
      default: break
      }
    }
    return stores
  }

  /// Promise 6: the reported changes lead to the shown values.
  private func checkView(
    _ seen: StoreInspection, _ view: [Key: EncodedValue], _ label: String
  ) throws(Violation) {
    guard seen.shown.mapValues(\.value) == view else {
      throw Violation(.notifications, "\(label): the changes told do not lead to what is shown")
    }
  }

  /// Promise 2: the shown values keep the limits.
  private func checkQuota(_ seen: StoreInspection, _ label: String) throws(Violation) {
    let bytes = seen.shown.values.reduce(0) { $0 + $1.value.bytes.count }
    guard bytes <= seen.policy.totalBytes, seen.shown.count <= seen.policy.keys,
      seen.shown.values.allSatisfy({ $0.value.bytes.count <= seen.policy.valueBytes })
    else {
      throw Violation(.quota, "\(label): \(bytes) bytes and \(seen.shown.count) keys are shown")
    }
  }

  /// Promise 2: the view is that of the reference.
  private func checkAdmission(_ seen: StoreInspection, _ label: String) throws(Violation) {
    var slots: [Key: (newest: Entry, runnerUp: Entry?)] = [:]
    for (key, kept) in seen.slots {
      guard let newest = kept.first else { continue }
      slots[key] = (newest.entry, kept.count > 1 ? kept[1].entry : nil)
    }
    for (key, entry) in seen.drafted { slots[key] = (entry, nil) }
    let wanted = ReferenceAdmission.shown(of: slots, under: seen.policy)
    guard wanted != seen.shown else { return }
    let keys = Set(wanted.keys).union(seen.shown.keys).filter { wanted[$0] != seen.shown[$0] }
    throw Violation(
      .quota, "\(label): the reference of admission shows \(keys.sorted()) otherwise")
  }

  /// Promise 4: all newest values of a group are shown, or none.
  private func checkGroups(_ seen: StoreInspection, _ label: String) throws(Violation) {
    var groups: [Claim: Set<Bool>] = [:]
    for key in Set(seen.slots.keys).union(seen.drafted.keys) {
      guard let entry = seen.drafted[key] ?? seen.slots[key]?.first?.entry, entry.value != nil
      else { continue }
      groups[entry.claim, default: []].insert(seen.shown[key]?.step == .value)
    }
    guard groups.values.allSatisfy({ $0.count == 1 }) else {
      throw Violation(.wholeTransactions, "\(label): half of a transaction is shown")
    }
  }

  /// Promise 8: bytes kept in a store.
  private func checkBounds(
    _ seen: StoreInspection, of device: SimulatedDevice, in store: StoreIdentifier,
    _ label: String
  ) throws(Violation) {
    // The last change set may exceed the limit.
    let limit = Replica.authorLimit(under: seen.policy) + Self.largestChangeSet
    for (author, weight) in seen.weights where author != device.keys.id && weight > limit {
      throw Violation(.bounds, "\(label): \(weight) bytes of one author are kept")
    }
    let historyLimit = Replica.historyLimit(under: seen.policy)
    guard seen.historyBytes <= historyLimit + Self.largestChangeSet else {
      throw Violation(.bounds, "\(label): \(seen.historyBytes) bytes of history are kept")
    }
    for (chain, covered) in seen.covered where covered > seen.received[chain] ?? 0 {
      throw Violation(.convergence, "\(label): more is covered than signed headers were received")
    }
  }

  /// The simulator's programs put less into a change set.
  private static var largestChangeSet: Int { 64 << 10 }

  /// Promises 5 and 9. The stamp is later than all that the program saw; claim and fallback are
  /// those of `Docs/Protocol.md` ("Writing and publishing").
  func checkAccepted(
    _ operations: [KithCore.Operation], _ draft: LocalWrite?,
    over before: StoreInspection, on device: SimulatedDevice, in store: StoreIdentifier
  ) throws(Violation) {
    var last: [String: EncodedValue?] = [:]
    for operation in operations { last[operation.key] = operation.value }
    for (key, value) in last where device.views[store]?[Key(key)] != value {
      throw Violation(.visibleAtOnce, "\(device.name)'s write of \(key) does not show")
    }
    guard let draft, let after = device.replica?.inspect(store) else { return }
    for operation in draft.operations {
      let key = Key(operation.key)
      let seen = before.drafted[key] ?? before.slots[key]?.first?.entry
      if let seen, seen.stamp >= Stamp(clock: draft.clock, device: device.keys.id) {
        throw Violation(.causality, "\(device.name)'s write of \(key) is older than what it saw")
      }
      guard let applied = after.drafted[key], applied.stamp.clock == draft.clock else { continue }
      guard
        applied.claim == ReferenceForm.claim(of: draft, over: before, by: device.keys.id, applied),
        applied.fallback == ReferenceForm.fallback(of: applied, over: before)
      else {
        throw Violation(
          .quota, "\(device.name)'s write of \(key) claims or falls back to what it should not")
      }
    }
  }
}
