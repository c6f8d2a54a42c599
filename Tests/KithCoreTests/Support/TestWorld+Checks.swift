import KithCrypto
import Testing

@testable import KithCore

extension TestWorld {
  func view(_ index: Int) -> [Key: EncodedValue] {
    devices[index].replica.view(of: Self.store)
  }

  func text(_ key: String, on index: Int) -> PropertyListValue? {
    try? view(index)[Key(key)]?.decoded()
  }

  func digest(_ index: Int, of store: StoreIdentifier = store) -> Digest256? {
    devices[index].replica.stores[store]?.digest()
  }

  /// The conditions that must hold on every device at every moment (`Docs/Testing.md`, "The
  /// promises").
  func checkInvariants(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
    for device in devices {
      for (identifier, store) in device.replica.stores {
        let state = store.state
        let view = device.replica.view(of: identifier)
        #expect(
          (device.views[identifier] ?? [:] == view) as Bool,
          "\(comment): \(device.name)'s changes do not lead to its view",
          sourceLocation: sourceLocation)
        let bytes = state.shown.values.reduce(0) { $0 + $1.value.size }
        #expect(bytes == state.shownBytes, "\(comment): bytes", sourceLocation: sourceLocation)
        #expect(
          bytes <= state.policy.totalBytes && state.shown.count <= state.policy.keys,
          "\(comment): \(device.name) is over quota", sourceLocation: sourceLocation)
        checkAdmission(state, "\(comment): \(device.name)", sourceLocation)
        checkGroups(state, "\(comment): \(device.name)", sourceLocation)
        checkNothingIsHidden(state, "\(comment): \(device.name)", sourceLocation)
        checkWeights(store.log, "\(comment): \(device.name)", sourceLocation)
      }
    }
  }

  /// The shown values are those that admission, computed anew, gives for the state.
  private func checkAdmission(
    _ state: StoreState, _ comment: Comment, _ sourceLocation: SourceLocation
  ) {
    let keys = Set(state.slots.keys).union(state.drafted.keys).sorted()
    let offers = keys.compactMap { key in state.slot(key)?.offer.map { (key, $0) } }
    let steps = Admission.shown(of: offers.map(\.1), under: state.policy)
    var shown: [Key: ShownStep] = [:]
    for ((key, _), step) in zip(offers, steps) { shown[key] = step }
    #expect(
      (shown == state.shown.mapValues(\.step)) as Bool,
      "\(comment): shown is not what admission says", sourceLocation: sourceLocation)
  }

  /// Promise 4: of the newest values of one group, all are shown or none.
  private func checkGroups(
    _ state: StoreState, _ comment: Comment, _ sourceLocation: SourceLocation
  ) {
    var groups: [Claim: Set<Bool>] = [:]
    for key in Set(state.slots.keys).union(state.drafted.keys) {
      guard let entry = state.slot(key)?.newest.entry, !entry.isRemoval else { continue }
      groups[entry.claim, default: []].insert(state.shown[key]?.step == .value)
    }
    #expect(
      groups.values.allSatisfy { $0.count == 1 }, "\(comment): half a transaction",
      sourceLocation: sourceLocation)
  }

  /// Promise 2: if everything fits, nothing is hidden.
  private func checkNothingIsHidden(
    _ state: StoreState, _ comment: Comment, _ sourceLocation: SourceLocation
  ) {
    let newest = Set(state.slots.keys).union(state.drafted.keys)
      .compactMap { state.slot($0)?.newest.entry }.filter { !$0.isRemoval }
    let sizes = newest.map { (key: $0.key.size, value: $0.value?.size ?? 0) }
    guard sizes.reduce(0, { $0 + $1.value }) <= state.policy.totalBytes,
      sizes.count <= state.policy.keys,
      sizes.allSatisfy({ state.policy.permits(keyBytes: $0.key, valueBytes: $0.value) })
    else { return }
    #expect(
      newest.allSatisfy { state.shown[$0.key]?.step == .value },
      "\(comment): something is hidden without need", sourceLocation: sourceLocation)
  }

  /// The weight that is counted for each author is the weight of its kept change sets.
  private func checkWeights(
    _ log: ChangeSetLog, _ comment: Comment, _ sourceLocation: SourceLocation
  ) {
    var weights: [DeviceID: Int] = [:]
    for changeSet in log.changeSets.values {
      weights[changeSet.reference.device, default: 0] += changeSet.weight
    }
    #expect(
      log.weights.byAuthor == weights, "\(comment): weights",
      sourceLocation: sourceLocation)
  }

  /// Promise 1.
  func checkConvergence(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
    for (index, device) in devices.enumerated().dropFirst() {
      let first = devices[0].replica
      #expect(
        device.replica.storeIdentifiers == first.storeIdentifiers, "\(comment): stores differ",
        sourceLocation: sourceLocation)
      for store in first.storeIdentifiers {
        #expect(
          (device.replica.view(of: store) == first.view(of: store)) as Bool,
          "\(comment): views differ", sourceLocation: sourceLocation)
        #expect(
          digest(index, of: store) == digest(0, of: store), "\(comment): digests differ",
          sourceLocation: sourceLocation)
        #expect(
          device.replica.stores[store]?.log.vector == first.stores[store]?.log.vector,
          "\(comment): vectors differ", sourceLocation: sourceLocation)
      }
    }
  }

  /// A disk gives the replica that it was written by, except for data that waits for a flush.
  func checkDisks(_ comment: Comment) throws {
    for (index, device) in devices.enumerated() {
      let before = view(index)
      let digestBefore = digest(index)
      let vectorBefore = device.replica.stores[Self.store]?.log.vector
      let links = self.links
      try restart(index)
      #expect(
        (view(index) == before) as Bool, "\(comment): \(device.name) shows another after a restart")
      #expect(digest(index) == digestBefore, "\(comment): \(device.name)'s digest")
      #expect(
        device.replica.stores[Self.store]?.log.vector == vectorBefore,
        "\(comment): \(device.name) forgot what it covers")
      #expect(device.replica.counters.damaged == 0)
      for key in links.keys where key.contains(index) { connect(key[0], key[1]) }
    }
    settle()
  }
}

func set(_ key: String, _ value: PropertyListValue) -> KithCore.Operation {
  do {
    return KithCore.Operation(key: key, value: try EncodedValue(value))
  } catch {
    preconditionFailure("\(error)")
  }
}

func remove(_ key: String) -> KithCore.Operation { KithCore.Operation(key: key, value: nil) }

func blob(_ size: Int, _ byte: UInt8 = 0x61) -> PropertyListValue {
  .string(String(repeating: Character(UnicodeScalar(byte)), count: size))
}
