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

extension TestWorld {
  /// Asks for a turn, and carries out a device's orders for a carrier until it rests.
  func turn(of index: Int, on id: CarrierID) {
    if devices[index].replica.carriers[id]?.schedule == nil {
      perform(.carrier(id, .attached(shortestMilliseconds: 5_000)), on: index)
    }
    perform(.carrier(id, .asked), on: index)
    while !orders.isEmpty {
      let (index, id, order) = orders.removeFirst()
      for event in carryOut(order, of: index, on: id) { perform(.carrier(id, event), on: index) }
    }
  }

  private func carryOut(
    _ order: CarrierOrder, of index: Int, on id: CarrierID
  ) -> [CarrierEvent] {
    let objects = carriers[id, default: [:]]
    switch order {
    case .list: return [.listed(objects.mapValues(\.count))]
    case .get(let names):
      let opener = devices[index].replica.objectOpener
      return names.map { name in .got(name, objects[name].map { opener.open($0, named: name) }) }
    case .put(let object):
      guard let sealed = try? object.sealed(from: devices[index].storage) else {
        Issue.record("\(devices[index].name) puts what its disk lacks")
        return [.failed(retryAfterMilliseconds: nil)]
      }
      let opener = devices[index].replica.objectOpener
      if opener.open(sealed, named: object.name).facts == nil {
        Issue.record("\(devices[index].name) puts what does not open")
      }
      carriers[id, default: [:]][object.name] = sealed
      return [.stored(object.name, bytes: sealed.count)]
    case .delete(let names):
      for name in names { carriers[id]?[name] = nil }
      return [.deleted]
    case .rest: return []
    }
  }
}

/// Change sets that a member can sign and that its own replica would not sign.
extension TestWorld {
  /// A change set of plaintexts, for a store, under a sequence of the author's chain.
  func seal(
    _ plaintexts: [[UInt8]], by author: Int, sequence: UInt64, for store: StoreIdentifier = store,
    clock: HybridTime? = nil
  ) throws -> ChangeSet {
    let replica = devices[author].replica
    var keyring = replica.keyring
    let epoch = try #require(keyring.current)
    let certificate = try #require(replica.roster.certificate(of: replica.keys.id))
    let box = keyring.sharedBox(epoch: epoch.id, author: certificate)
    let sealer = Sealer(
      box: try #require(box),
      storeTag: epoch.storeTag(of: store), epoch: epoch.id, chain: try chain(of: author),
      account: account, keys: replica.keys)
    return sealer.seal(
      plaintexts, sequence: sequence, clock: clock ?? devices[author].replica.tick(),
      noncePrefix: random.draw())
  }

  /// The chain under which a device publishes now.
  func chain(of index: Int) throws -> ChainID {
    let replica = devices[index].replica
    return ChainID(device: replica.keys.id, incarnation: try #require(replica.incarnations.current))
  }

  /// A value of a key as a device would write it now; `by` another, it bears that one's stamp.
  func entry(
    _ key: String, _ value: PropertyListValue = 1, on index: Int, by writer: Int? = nil
  ) throws -> Entry {
    let stamp = Stamp(
      clock: devices[index].replica.tick(), device: devices[writer ?? index].keys.id)
    return Entry(
      key: Key(key), stamp: stamp, content: .value(try EncodedValue(value)),
      claim: Claim(clock: stamp.clock, device: stamp.device, group: 0))
  }

  /// Hands a batch to a device as if a peer had sent it.
  func hand(_ batch: Batch, from sender: Int, to peer: Int) throws {
    let link = try #require(links[[min(sender, peer), max(sender, peer)]])
    let session = try #require(link.ends.first { $0.to == peer }?.session)
    for message in batch.messages() {
      let inbound = try #require(InboundMessage(decoding: message, account: account))
      perform(.received(session, inbound), on: peer)
    }
  }

  /// Hands change sets of one author to a device, as covering what is above `from`.
  func hand(
    _ changeSets: [ChangeSet], above from: UInt64, from sender: Int, to peer: Int
  ) throws {
    let last = try #require(changeSets.last?.header)
    try hand(
      Batch(
        store: Self.store, changeSets: changeSets,
        covers: [Cover(chain: last.chain, from: from, through: last.sequence)]),
      from: sender, to: peer)
  }

  /// Has a member publish plaintexts that its own replica would not, and sends them to a peer.
  func publish(_ plaintexts: [[UInt8]], by author: Int, to peer: Int) throws {
    forged += 1
    let changeSet = try seal(plaintexts, by: author, sequence: forged)
    try hand([changeSet], above: forged - 1, from: author, to: peer)
  }

  /// The sequence up to which a device covers another's chain.
  func covered(of author: Int, on index: Int) throws -> UInt64 {
    devices[index].replica.stores[Self.store]?.log.vector[try chain(of: author)] ?? 0
  }

  /// The messages that device `index` has sent to `peer` and that have not arrived.
  func underWay(from index: Int, to peer: Int) -> [InboundMessage.Body] {
    let messages = links[[min(index, peer), max(index, peer)]]?.ends.first { $0.to == peer }?
      .messages
    return (messages ?? []).compactMap { InboundMessage(decoding: $0, account: account)?.body }
  }
}
