internal import KithCrypto

/// What a peer is still to be sent of a store, piece by piece (`Docs/Protocol.md`, "Answer").
struct Answer {
  var store: StoreIdentifier
  /// The number of the `Have` that it answers; 0: sent unasked.
  var number: UInt64
  /// Sent because equal vectors had different digests.
  var isEverything = false
  /// Above this it is still to be sent: what the peer covers, and what was sent since.
  var vector: [ChainID: UInt64]

  /// Takes the next piece: a batch of about so many bytes. It ends between two sequences of a chain,
  /// and covers that chain as far as it holds it. Only the last piece says that it answers.
  ///
  /// - Returns: The piece, and whether it is the last.
  /// - Complexity: O(*n* log *n*) in the change sets kept.
  mutating func nextPiece(of log: ChangeSetLog, bytes limit: Int) -> (StoredBatch, isLast: Bool) {
    let changeSets = log.changeSets(above: vector)
    let end = Self.end(of: changeSets, bytes: limit)
    let cut = end < changeSets.count ? changeSets[end].chain : nil
    var batch = StoredBatch(store: store, isEverything: isEverything)
    batch.answers = cut == nil ? number : 0
    batch.changeSets = Array(changeSets[..<end])
    let held = batch.changeSets.last { $0.chain == cut }?.sequence ?? 0
    // While a revoked device's entries are withheld, those that they replaced are not kept any more.
    let vector = log.holdsWithheld ? [:] : log.vector
    for (chain, covered) in vector.sorted(by: { $0.key < $1.key }) {
      if let cut, chain > cut { break }
      let from = self.vector[chain] ?? 0
      let through = chain == cut ? min(covered, held) : covered
      if from < through { batch.covers.append(Cover(chain: chain, from: from, through: through)) }
    }
    // Of a chain that is not covered so far the rest follows all the same.
    for changeSet in batch.changeSets { raise(changeSet.chain, to: changeSet.sequence) }
    for cover in batch.covers { raise(cover.chain, to: cover.through) }
    return (batch, cut == nil)
  }

  private mutating func raise(_ chain: ChainID, to sequence: UInt64) {
    vector[chain] = max(vector[chain] ?? 0, sequence)
  }

  /// How many change sets one piece holds: at least those of one sequence, and always all of one,
  /// for a fork that was cut could not be covered.
  private static func end(of changeSets: [KeptChangeSet], bytes limit: Int) -> Int {
    var (end, bytes) = (0, 0)
    while end < changeSets.count {
      let first = changeSets[end]
      let fork = changeSets[end...].prefix {
        $0.chain == first.chain && $0.sequence == first.sequence
      }
      bytes += fork.reduce(0) { $0 + $1.weight }
      if end > 0, bytes > limit { break }
      end = fork.endIndex
    }
    return end
  }
}

/// What a session's peer waits for because the session takes no more.
enum Waiting {
  /// It asked, and nothing was sent yet.
  case asked(StoreHave, number: UInt64)
  /// It was sent some pieces of an answer.
  case rest(Answer)
}
