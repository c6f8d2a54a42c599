internal import KithCrypto

/// Data of a store to send to a peer in pieces (`Docs/Protocol/sessions.md`, "An answer in
/// pieces").
struct Answer {
  var store: StoreIdentifier
  /// The number of the answered `Have`; 0: sent unasked.
  var number: UInt64
  /// Sent because equal vectors had different digests.
  var isEverything = false
  /// The peer has the same state, also what is kept above its vector: an author may leave a gap below
  /// that for good.
  var isEmpty = false
  /// The peer's coverage; the answer holds change sets above it.
  var vector: [ChainID: UInt64]
  /// The change sets of earlier pieces.
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

  /// The peer covers more now. An answer with everything ignores it.
  mutating func raise(to known: [ChainID: UInt64]) {
    if !isEverything { vector.merge(known, uniquingKeysWith: max) }
  }

  /// Takes the next piece: about `limit` bytes of the change sets kept now. Only the last has
  /// covers, for all: an earlier piece lacks entries that entries of a later one replaced.
  ///
  /// - Complexity: O(*n* log *n*) in the change sets kept.
  mutating func nextPiece(of log: ChangeSetLog, bytes limit: Int) -> StoredBatch {
    let changeSets =
      isEmpty ? [] : log.changeSets(above: vector).filter { !sent.contains($0.reference) }
    let end = Self.end(of: changeSets, bytes: limit)
    var batch = StoredBatch(store: store, answers: number, isEverything: isEverything)
    batch.changeSets = Array(changeSets[..<end])
    guard end == changeSets.count else {
      batch.isUnfinished = true
      sent.formUnion(batch.changeSets.map(\.reference))
      return batch
    }
    // Entries that withheld ones replaced are gone, so nothing can be covered.
    for (chain, through) in log.vector.sorted(by: { $0.key < $1.key }) where !log.holdsWithheld {
      let from = vector[chain] ?? 0
      if from < through { batch.covers.append(Cover(chain: chain, from: from, through: through)) }
    }
    return batch
  }

  /// At least one change set.
  private static func end(of changeSets: [KeptChangeSet], bytes limit: Int) -> Int {
    var bytes = 0
    let end = changeSets.firstIndex { changeSet in
      bytes += changeSet.weight
      return bytes > limit
    }
    return end.map { max($0, 1) } ?? changeSets.count
  }
}
