@testable import KithCrypto

@testable import KithCore

extension FuzzDevice {
  /// The conditions that must hold at every moment (`Docs/Testing.md`, "The promises").
  func checkInvariants() {
    for (identifier, store) in replica.stores {
      let state = store.state
      require(
        (views[identifier] ?? [:]) == replica.view(of: identifier),
        "the changes do not lead to the view")
      let bytes = state.shown.values.reduce(0) { $0 + $1.value.size }
      require(bytes == state.shownBytes, "the bytes shown are miscounted")
      require(
        bytes <= state.policy.totalBytes && state.shown.count <= state.policy.keys, "over quota")
      checkAdmission(state)
      checkGroups(state)
      checkLog(store.log)
      require(state.removals.count <= Limits.removals, "too many removals")
      let removals = store.drafts.byKey.count { key, draft in
        draft.operation.value == nil && state.slots[key] == nil
      }
      require(removals <= Limits.removals, "too many removals that no device needs")
    }
    require(replica.stores.count <= Limits.stores, "too many stores")
    for addresses in replica.contacts.addresses.values {
      require(addresses.count <= Limits.addressesPerDevice, "too many addresses")
    }
  }

  /// The shown values are those that admission, computed anew, gives for the state. If everything
  /// fits, everything is shown.
  private func checkAdmission(_ state: StoreState) {
    let keys = Set(state.slots.keys).union(state.drafted.keys).sorted()
    let offers = keys.compactMap { key in state.slot(key)?.offer.map { (key, $0) } }
    let steps = Admission.shown(of: offers.map(\.1), under: state.policy)
    var shown: [Key: ShownStep] = [:]
    for ((key, _), step) in zip(offers, steps) { shown[key] = step }
    require(shown == state.shown.mapValues(\.step), "shown is not what admission says")
    let newest = keys.compactMap { state.slot($0)?.newest.entry }.filter { !$0.isRemoval }
    let sizes = newest.map { (key: $0.key.size, value: $0.value?.size ?? 0) }
    guard sizes.reduce(0, { $0 + $1.value }) <= state.policy.totalBytes,
      sizes.count <= state.policy.keys,
      sizes.allSatisfy({ state.policy.permits(keyBytes: $0.key, valueBytes: $0.value) })
    else { return }
    require(
      newest.allSatisfy { state.shown[$0.key]?.step == .value }, "hidden without need")
  }

  /// Of the newest values of one group, all are shown or none.
  private func checkGroups(_ state: StoreState) {
    var groups: [Claim: Set<Bool>] = [:]
    for key in Set(state.slots.keys).union(state.drafted.keys) {
      guard let entry = state.slot(key)?.newest.entry, !entry.isRemoval else { continue }
      groups[entry.claim, default: []].insert(state.shown[key]?.step == .value)
    }
    require(groups.values.allSatisfy { $0.count == 1 }, "half a transaction")
  }

  /// The weight that is counted for each author is the weight of its kept change sets, at most its
  /// room. No chain covers more than was received.
  private func checkLog(_ log: ChangeSetLog) {
    var weights: [DeviceID: Int] = [:]
    for changeSet in log.changeSets.values {
      weights[changeSet.reference.device, default: 0] += changeSet.weight
    }
    require(log.weights.byAuthor == weights, "the weights are miscounted")
    require(log.chains.count <= Limits.chainsPerStore, "too many chains")
    require(log.quarantined.count <= Limits.quarantined, "too much set aside")
    require(
      log.chains.values.allSatisfy { $0.covered <= $0.received }, "covers what never came")
    let covered = log.chains.mapValues(\.covered).filter {
      $0.value > 0 && !log.isWithheld($0.key.device)
    }
    require(log.vector == covered, "the vector is not that of the chains")
    let incarnations = Dictionary(grouping: log.chains.keys, by: \.device)
    require(
      log.incarnations == incarnations.mapValues { Set($0.map(\.incarnation)) },
      "the incarnations are not those of the chains")
  }
}
