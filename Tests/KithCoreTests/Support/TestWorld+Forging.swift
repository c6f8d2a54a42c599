import KithCrypto
import Testing

@testable import KithCore

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
