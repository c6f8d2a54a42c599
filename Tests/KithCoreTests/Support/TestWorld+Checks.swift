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

/// Checks, at every step of every test, that data is on the disk before an effect that depends on
/// it: a `persist` precedes each effect that depends on it, and a crash undoes nothing that others
/// rely on.
extension TestWorld {
  /// The content of a message, and every belief that it causes in others, is committed before its
  /// first byte is sent.
  func checkIsDurable(_ message: [UInt8], on device: Device) {
    switch InboundMessage(decoding: message, account: account)?.body {
    case .batch(let part):
      for case .sound(let changeSet) in part.changeSets {
        checkIsKept(changeSet, part.store, device)
      }
    case .have(let have):
      for store in have.stores {
        let vector = device.disk.stores[store.store]?.vector ?? [:]
        let isDurable = store.vector.allSatisfy { chain, sequence in
          vector[chain] ?? 0 >= sequence
        }
        #expect(isDurable, "\(device.name) told what it covers before that was committed")
      }
    case .records(let records):
      #expect(
        records.allSatisfy { device.disk.records[$0.record.id] != nil },
        "\(device.name) sent records before they were committed")
    case .addresses, .done, nil: break
    }
  }

  /// The change set, or a later one of its chain, is on the disk; and its author gave the sequence
  /// to no other.
  private func checkIsKept(
    _ changeSet: ChangeSet, _ store: StoreIdentifier, _ device: Device
  ) {
    let chain = changeSet.header.chain
    let kept = (device.disk.stores[store]?.changeSets ?? [:]).keys.lazy
      .filter { $0.device == chain.device && $0.incarnation == chain.incarnation }
      .map(\.sequence).max()
    #expect(
      kept ?? 0 >= changeSet.header.sequence, "\(device.name) sent before it was committed")
    guard chain.device == device.keys.id else { return }
    let digest = changeSet.reference.digest
    let given = device.given[store]?[chain]?[changeSet.header.sequence]
    #expect(given ?? digest == digest, "\(device.name) gave a sequence twice")
    device.given[store, default: [:]][chain, default: [:]][changeSet.header.sequence] = digest
  }

  /// A write that a program is about to be told is durable is on the disk: as a draft, or
  /// published.
  func checkIsDurable(_ device: Device) {
    for (identifier, store) in device.replica.stores {
      let disk = device.disk.stores[identifier]
      let published = store.log.changeSets.keys.filter { $0.device == device.keys.id }
      #expect(
        published.allSatisfy { disk?.changeSets[$0] != nil }
          && store.drafts.transactions == disk?.draftedWrites ?? [],
        "\(device.name) acknowledged before it committed")
    }
  }

  /// The clock is persisted with the data that it stamped, never apart (`Docs/Protocol.md`,
  /// "Clocks, stamps, claims").
  func checkClock(_ mutations: [Mutation], on device: Device) {
    for mutation in mutations {
      let clock: HybridTime? =
        switch mutation {
        case .put(.store(_, .changeSet), let row):
          StoredChangeSet(row: row).flatMap { try? ChangeSetHeader(decoding: $0.header) }?.clock
        case .put(.store(_, .draft), let bytes): Draft(decoding: bytes)?.clock
        default: nil
        }
      // The clock gave out no adopted stamp.
      guard let clock, !clock.isAdopted else { continue }
      #expect(clock <= device.disk.clock, "\(device.name) forgot the clock of what it stamped")
    }
  }
}
