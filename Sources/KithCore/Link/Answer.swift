internal import KithCrypto

/// The data of a store that a peer still has to be sent, piece by piece (`Docs/Protocol.md`,
/// "Answer").
struct Answer {
  var store: StoreIdentifier
  /// The number of the `Have` that it answers; 0: sent unasked.
  var number: UInt64
  /// Sent because equal vectors had different digests.
  var isEverything = false
  /// The peer's coverage: the peer is sent the change sets kept above it.
  var vector: [ChainID: UInt64]
  /// The change sets that the pieces so far held.
  private(set) var sent: Set<ChangeSetReference> = []

  init(
    store: StoreIdentifier, number: UInt64, isEverything: Bool = false,
    above vector: [ChainID: UInt64]
  ) {
    self.store = store
    self.number = number
    self.isEverything = isEverything
    self.vector = isEverything ? [:] : vector
  }

  /// The peer covers more by now. An answer that sends everything still does.
  mutating func raise(to known: [ChainID: UInt64]) {
    if !isEverything { vector.merge(known, uniquingKeysWith: max) }
  }

  /// Takes the next piece: a batch of about this many bytes, of the change sets kept now. Only the
  /// last piece has covers, for all of them: an entry in one piece may have replaced an entry that
  /// an earlier piece lacks.
  ///
  /// - Complexity: O(*n* log *n*) in the change sets kept.
  mutating func nextPiece(of log: ChangeSetLog, bytes limit: Int) -> StoredBatch {
    let changeSets = log.changeSets(above: vector).filter { !sent.contains($0.reference) }
    let end = Self.end(of: changeSets, bytes: limit)
    var batch = StoredBatch(store: store, answers: number, isEverything: isEverything)
    batch.changeSets = Array(changeSets[..<end])
    guard end == changeSets.count else {
      batch.isUnfinished = true
      sent.formUnion(batch.changeSets.map(\.reference))
      return batch
    }
    // While a revoked device's entries are withheld, those that they replaced are not kept any more.
    for (chain, through) in log.vector.sorted(by: { $0.key < $1.key }) where !log.holdsWithheld {
      let from = vector[chain] ?? 0
      if from < through { batch.covers.append(Cover(chain: chain, from: from, through: through)) }
    }
    return batch
  }

  /// How many change sets one piece holds: at least one.
  private static func end(of changeSets: [KeptChangeSet], bytes limit: Int) -> Int {
    var bytes = 0
    let end = changeSets.firstIndex { changeSet in
      bytes += changeSet.weight
      return bytes > limit
    }
    return end.map { max($0, 1) } ?? changeSets.count
  }
}
