import KithCrypto
import Testing

@testable import KithCore

extension TestWorld {
  func view(_ index: Int) -> [String: EncodedValue] {
    devices[index].replica.view(of: Self.store)
  }

  func text(_ key: String, on index: Int) -> PropertyListValue? {
    try? view(index)[key]?.decoded()
  }

  func digest(_ index: Int) -> Digest256? {
    devices[index].replica.stores[Self.store]?.digest()
  }

  /// What must hold on every device at every moment (design, section 12).
  func checkInvariants(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
    for (index, device) in devices.enumerated() {
      guard let store = device.replica.stores[Self.store] else { continue }
      let state = store.state
      #expect(
        (device.views[Self.store] ?? [:] == view(index)) as Bool,
        "\(comment): \(device.name)'s changes do not lead to its view",
        sourceLocation: sourceLocation)
      let bytes = state.shown.values.reduce(0) { $0 + $1.value.size }
      #expect(bytes == state.shownBytes, "\(comment): bytes", sourceLocation: sourceLocation)
      #expect(
        bytes <= state.policy.totalBytes && state.shown.count <= state.policy.keys,
        "\(comment): \(device.name) is over quota", sourceLocation: sourceLocation)
      checkAdmission(state, "\(comment): \(device.name)", sourceLocation)
    }
  }

  /// What is shown is what admission says of the state, worked out from nothing.
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
      "\(comment): shown is not what admission says",
      sourceLocation: sourceLocation)
  }

  /// Promise 1.
  func checkConvergence(_ comment: Comment, sourceLocation: SourceLocation = #_sourceLocation) {
    for index in devices.indices.dropFirst() {
      #expect(
        (view(index) == view(0)) as Bool, "\(comment): views differ", sourceLocation: sourceLocation
      )
      #expect(
        digest(index) == digest(0), "\(comment): digests differ", sourceLocation: sourceLocation)
      #expect(
        devices[index].replica.stores[Self.store]?.log.vector
          == devices[0].replica.stores[Self.store]?.log.vector, "\(comment): vectors differ",
        sourceLocation: sourceLocation)
    }
  }

  /// A disk gives the replica that it was written by, but for what waits for a flush.
  func checkDisks(_ comment: Comment) throws {
    for (index, device) in devices.enumerated() {
      let before = view(index)
      let digestBefore = digest(index)
      let links = self.links
      try restart(index)
      #expect(
        (view(index) == before) as Bool, "\(comment): \(device.name) shows another after a restart")
      #expect(digest(index) == digestBefore, "\(comment): \(device.name)'s digest")
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
