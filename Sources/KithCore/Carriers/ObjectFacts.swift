internal import KithCrypto

/// The content of an object, for checkers.
package struct ObjectFacts: Sendable {
  package var author: DeviceID
  package var epoch: EpochID
  package var level: Int
  package var isPiece: Bool
  /// The vectors that its reader covers before, and afterwards.
  package var stores: [StoreIdentifier: (above: [ChainID: UInt64], through: [ChainID: UInt64])]
  /// How many words are inside, and whether it has records.
  package var words: Int
  package var hasRecords: Bool
  package var messages: [InboundMessage]
}

extension OpenedObject {
  /// Nil: it does not open.
  package var facts: ObjectFacts? {
    guard case .opened(let body, let messages) = content else { return nil }
    return ObjectFacts(
      author: body.author, epoch: body.epoch, level: Int(body.level), isPiece: body.isPiece,
      stores: Dictionary(
        body.parts.map { ($0.store, (above: $0.above, through: $0.have.vector)) },
        uniquingKeysWith: { first, _ in first }),
      words: body.wordVersions.count, hasRecords: body.rosterDigest != nil, messages: messages)
  }
}

extension ObjectOpener {
  /// Whether this device has an epoch's key.
  package func holds(_ epoch: EpochID) -> Bool { epochs.contains { $0.id == epoch } }
}
