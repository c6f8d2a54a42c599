internal import KithCrypto
internal import SwiftProtobuf

/// Whoever covers a chain up to `from` covers it up to `through` once it has the batch.
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

/// What is applied, counted in the vector and passed on in one step (design, section 5).
package struct Batch: Sendable {
  package var store: StoreIdentifier
  /// The number of the `Have` that it answers; 0: sent unasked.
  package var answers: UInt64 = 0
  /// Sent because equal vectors had different digests.
  package var isEverything = false
  package var changeSets: [ChangeSet] = []
  package var covers: [Cover] = []

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

  /// The messages that carry the batch: one or more, back to back.
  package func messages() -> [[UInt8]] {
    var parts: [[UInt8]] = []
    var part = WireBatch()
    var bytes = 0
    func close(more: Bool) {
      part.store = store.rawValue
      part.answers = answers
      part.everything = isEverything
      part.more = more
      var message = WireMessage()
      message.batch = part
      parts.append(message.encodedBytes())
      part = WireBatch()
      bytes = 0
    }
    for changeSet in changeSets {
      if bytes > 0, bytes + changeSet.weight > Limits.batchPartBytes { close(more: true) }
      part.changeSets.append(changeSet.wire)
      bytes += changeSet.weight
    }
    if bytes > 0, bytes + covers.count * Limits.coverBytes > Limits.batchPartBytes {
      close(more: true)
    }
    part.covers = covers.map { cover in
      var wire = WireCover()
      wire.device = .init(cover.chain.device.bytes)
      wire.incarnation = cover.chain.incarnation.rawValue
      wire.from = cover.from
      wire.through = cover.through
      return wire
    }
    close(more: false)
    return parts
  }
}

/// One message of a batch, checked.
struct BatchPart {
  var store: StoreIdentifier
  var answers: UInt64
  var isEverything: Bool
  var hasMore: Bool
  var changeSets: [CheckedChangeSet]
  var covers: [Cover]

  /// Nil where the message is malformed.
  init?(_ wire: WireBatch, account: AccountID, concurrently: InboundMessage.Repeater?) {
    guard let store = StoreIdentifier(wire.store), wire.covers.count <= Limits.chainsPerStore,
      wire.changeSets.count <= Limits.changeSetsPerMessage, wire.covers.isEmpty || !wire.more
    else { return nil }
    self.store = store
    answers = wire.answers
    isEverything = wire.everything
    hasMore = wire.more
    covers = []
    for cover in wire.covers {
      guard let chain = ChainID(device: cover.device, incarnation: cover.incarnation),
        cover.from < cover.through, cover.through <= Limits.sequence
      else { return nil }
      covers.append(Cover(chain: chain, from: cover.from, through: cover.through))
    }
    guard covers.isStrictlyAscending(by: \.chain) else { return nil }
    let sets = wire.changeSets
    // One large change set has its entries checked at once, of many each is checked whole.
    let inner = sets.count == 1 ? concurrently : nil
    let checked = values(sets.count, by: 1, with: concurrently) { index in
      CheckedChangeSet(sets[index], account: account, concurrently: inner)
    }
    changeSets = checked.compactMap(\.self)
    guard changeSets.count == checked.count else { return nil }
  }
}
