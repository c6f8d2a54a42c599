package import KithCrypto

/// Facts in a message that its sender must have made durable, for checkers.
package enum MessageFacts: Sendable {
  /// Change sets that passed their checks.
  case batch(StoreIdentifier, [ChangeSetHeaderFacts], hasMore: Bool)
  case have([StoreIdentifier: [ChainID: UInt64]])
  case records([Digest256])
  /// Addresses, or a join's last message.
  case other
}

package struct ChangeSetHeaderFacts: Sendable {
  package var chain: ChainID
  package var reference: ChangeSetReference
}

extension InboundMessage {
  package var facts: MessageFacts {
    switch body {
    case .batch(let part):
      .batch(
        part.store,
        part.changeSets.compactMap { checked in
          guard case .sound(let changeSet) = checked else { return nil }
          return ChangeSetHeaderFacts(
            chain: changeSet.header.chain, reference: changeSet.reference)
        }, hasMore: part.hasMore)
    case .have(let have):
      .have(
        Dictionary(
          have.stores.map { ($0.store, $0.vector) }, uniquingKeysWith: { old, _ in old }))
    case .records(let records): .records(records.map(\.record.id))
    case .addresses, .done: .other
    }
  }
}

/// The purpose of a message, for measurements.
package enum Traffic: Hashable, Sendable {
  case changes
  /// A device's changes of its own vector.
  case progress
  case words
  /// Full `Have`s, records, addresses.
  case other
}

extension InboundMessage {
  package var traffic: Traffic {
    switch body {
    case .batch: .changes
    case .have(let have) where have.isWhole || have.listsAll: .other
    case .have(let have): have.stores.isEmpty ? .words : .progress
    case .records, .addresses, .done: .other
    }
  }
}
