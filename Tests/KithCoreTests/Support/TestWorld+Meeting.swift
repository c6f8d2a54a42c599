import KithCrypto
import Testing

@testable import KithCore

/// Sessions as transports make them: under an epoch's key that both have.
extension TestWorld {
  /// Whether a session was made, and whether it carries stores.
  enum Meeting {
    case none
    case membershipOnly
    case full
  }

  @discardableResult
  func meet(_ a: Int, _ b: Int) -> Meeting {
    func epochs(_ index: Int) -> [EpochID] {
      devices[index].replica.handshakeEpochs(at: instant(of: index)).prefix(8).map(\.id)
    }
    let taken = epochs(b)
    for (turn, epoch) in epochs(a).enumerated() {
      guard let other = taken.firstIndex(of: epoch) else { continue }
      connect(a, b, underOlderEpoch: other > 0, dialledUnderOlder: turn > 0)
      return turn == 0 && other == 0 ? .full : .membershipOnly
    }
    return .none
  }

  /// Two devices meet, exchange what they may, wait as long as members wait, and part. If the
  /// session was for membership only, they meet again.
  func visit(_ a: Int, _ b: Int) {
    for _ in 0..<3 {
      let meeting = meet(a, b)
      settle()
      if meeting != .full {
        disconnect(a, b)
        if meeting == .none { return }
        continue
      }
      advance(milliseconds: 6_000)
      settle()
      disconnect(a, b)
      return
    }
  }

  /// All devices of a group visit each other, in a random order, several times.
  func mingle(_ group: [Int], rounds: Int = 3) {
    let pairs = group.flatMap { a in group.compactMap { b in a < b ? (a, b) : nil } }
    for _ in 0..<rounds {
      for (a, b) in pairs.shuffled(using: &random) { visit(a, b) }
      advance(milliseconds: 6_000)
    }
  }

  func id(_ index: Int) -> DeviceID { devices[index].keys.id }

  func revoke(_ device: Int, by index: Int, keeping: Set<DeviceID> = []) {
    perform(.revoke(id(device), keeping: keeping), on: index)
  }

  /// Whether a device's replica has anything left of another's chains.
  func keepsChains(of other: Int, on index: Int) -> Bool {
    devices[index].replica.stores.values.contains { store in
      store.log.chains.keys.contains { $0.device == id(other) }
        || store.log.changeSets.keys.contains { $0.device == id(other) }
    }
  }

  /// The members of a group show the same, under one epoch, and keep nothing of the devices that
  /// left.
  func checkAgreement(
    _ group: [Int], without gone: [Int], _ comment: Comment,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let first = group[0]
    let store = devices[first].replica.stores[Self.store]
    #expect(
      devices[first].replica.keyring.current != nil, "\(comment): no epoch",
      sourceLocation: sourceLocation)
    for index in group {
      let replica = devices[index].replica
      #expect(
        replica.roster.digest == devices[first].replica.roster.digest, "\(comment): rosters differ",
        sourceLocation: sourceLocation)
      #expect(
        replica.keyring.current?.id == devices[first].replica.keyring.current?.id,
        "\(comment): epochs differ", sourceLocation: sourceLocation)
      #expect(
        (view(index) == view(first)) as Bool, "\(comment): views differ",
        sourceLocation: sourceLocation)
      #expect(
        digest(index) == digest(first), "\(comment): digests differ",
        sourceLocation: sourceLocation)
      #expect(
        replica.stores[Self.store]?.log.vector == store?.log.vector, "\(comment): vectors differ",
        sourceLocation: sourceLocation)
      #expect(
        replica.counters.divergences == 0, "\(comment): a divergence",
        sourceLocation: sourceLocation)
      for other in gone {
        #expect(
          !keepsChains(of: other, on: index), "\(comment): chains are left",
          sourceLocation: sourceLocation)
        #expect(
          replica.coverage.lacking([:], of: TestWorld.store, id(other)) == nil,
          sourceLocation: sourceLocation)
        #expect(!replica.roster.isMember(id(other)), sourceLocation: sourceLocation)
      }
    }
    checkInvariants(comment, sourceLocation: sourceLocation)
  }
}
