internal import KithCrypto
internal import SwiftProtobuf

/// A device that covers a chain up to `from` covers it up to `through` once it has the batch.
package struct Cover: Hashable, Sendable {
  package var chain: ChainID
  package var from: UInt64
  package var through: UInt64

  package init(chain: ChainID, from: UInt64, through: UInt64) {
    self.chain = chain
    self.from = from
    self.through = through
  }
}

/// Change sets and covers of one store that are applied, counted and relayed in one step
/// (`Docs/Protocol.md`, "Batch").
package struct Batch: Sendable {
  package var store: StoreIdentifier
  /// The number of the `Have` that it answers; 0 if unasked.
  package var answers: UInt64 = 0
  /// Whether it was sent because equal vectors had different digests.
  package var isEverything = false
  /// Whether more pieces of the answer, or of the data that the peer missed, follow; such a piece
  /// has no covers.
  package var isUnfinished = false
  package var changeSets: [ChangeSet] = []
  package var covers: [Cover] = []
  /// The sender's horizon: what is covered may lack removals published up to it.
  package var horizon = HybridTime.zero
  /// Whether the sender said that it is below its horizon.
  var isFromBelow = false

  package init(
    store: StoreIdentifier, answers: UInt64 = 0, isEverything: Bool = false,
    changeSets: [ChangeSet] = [], covers: [Cover] = []
  ) {
    self.store = store
    self.answers = answers
    self.isEverything = isEverything
    self.changeSets = changeSets
    self.covers = covers
  }

  var isEmpty: Bool { changeSets.isEmpty && covers.isEmpty }
  var weight: Int { changeSets.reduce(0) { $0 + $1.weight } }

  /// The batch's messages, to be sent back to back.
  package func messages() -> [[UInt8]] {
    BatchFrame.parts(of: changeSets.map(\.weight), covers: covers.count).map { part in
      frame(isLast: part.isLast).encoded(changeSets[part.range].map(\.wire))
    }
  }

  private func frame(isLast: Bool) -> BatchFrame {
    BatchFrame(
      store: store, answers: answers, isEverything: isEverything, isUnfinished: isUnfinished,
      hasMore: !isLast,
      covers: isLast ? covers : [], horizon: horizon)
  }
}

/// The fields of a batch's message besides change sets.
struct BatchFrame: Hashable, Sendable {
  var store: StoreIdentifier
  var answers: UInt64
  var isEverything: Bool
  var isUnfinished: Bool
  var hasMore: Bool
  var covers: [Cover]
  var horizon: HybridTime

  /// Spreads change sets of these weights over messages; the last may hold covers alone.
  static func parts(of weights: [Int], covers: Int) -> [(range: Range<Int>, isLast: Bool)] {
    var ranges: [Range<Int>] = []
    var (start, bytes) = (0, 0)
    func close(at end: Int) {
      ranges.append(start..<end)
      (start, bytes) = (end, 0)
    }
    for (position, weight) in weights.enumerated() {
      if bytes > 0, bytes + weight > Limits.batchPartBytes { close(at: position) }
      bytes += weight
    }
    if bytes > 0, bytes + covers * Limits.coverBytes > Limits.batchPartBytes {
      close(at: weights.count)
    }
    close(at: weights.count)
    return ranges.enumerated().map { ($0.element, $0.offset == ranges.count - 1) }
  }

  func encoded(_ changeSets: [WireChangeSet]) -> [UInt8] {
    var message = WireMessage()
    message.batch.store = store.rawValue
    message.batch.answers = answers
    message.batch.everything = isEverything
    message.batch.unfinished = isUnfinished
    message.batch.more = hasMore
    message.batch.horizon = horizon.rawValue
    message.batch.changeSets = changeSets
    message.batch.covers = covers.map { cover in
      var wire = WireCover()
      wire.device = .init(cover.chain.device.bytes)
      wire.incarnation = cover.chain.incarnation.rawValue
      wire.from = cover.from
      wire.through = cover.through
      return wire
    }
    return message.encodedBytes()
  }
}

struct BatchPart {
  var store: StoreIdentifier
  var answers: UInt64
  var isEverything: Bool
  var isUnfinished: Bool
  var hasMore: Bool
  var changeSets: [CheckedChangeSet]
  var covers: [Cover]
  var horizon: HybridTime

  init?(_ wire: WireBatch, account: AccountID, concurrently: InboundMessage.Repeater?) {
    guard let store = StoreIdentifier(wire.store), wire.covers.count <= Limits.chainsPerStore,
      wire.changeSets.count <= Limits.changeSetsPerMessage,
      wire.covers.isEmpty || !wire.more && !wire.unfinished
    else { return nil }
    self.store = store
    answers = wire.answers
    isEverything = wire.everything
    isUnfinished = wire.unfinished
    hasMore = wire.more
    horizon = HybridTime(rawValue: wire.horizon)
    covers = []
    for cover in wire.covers {
      guard let chain = ChainID(device: cover.device, incarnation: cover.incarnation),
        cover.from < cover.through, cover.through <= Limits.sequence
      else { return nil }
      covers.append(Cover(chain: chain, from: cover.from, through: cover.through))
    }
    guard covers.isStrictlyAscending(by: \.chain) else { return nil }
    let sets = wire.changeSets
    // The entries of a single change set are checked at once; otherwise the change sets are.
    let inner = sets.count == 1 ? concurrently : nil
    let checked = values(sets.count, by: 1, with: concurrently) { index in
      CheckedChangeSet(sets[index], account: account, concurrently: inner)
    }
    changeSets = checked.compactMap(\.self)
    guard changeSets.count == checked.count else { return nil }
  }
}
