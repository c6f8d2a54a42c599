package import KithCrypto

/// What a message says that its sender must have made durable before: for checkers.
package enum MessageFacts: Sendable {
  /// Change sets of a store that passed their checks.
  case batch(StoreIdentifier, [ChangeSetHeaderFacts], hasMore: Bool)
  /// What the sender covers, by store.
  case have([StoreIdentifier: [ChainID: UInt64]])
  /// Membership records, by their id.
  case records([Digest256])
  /// Addresses of devices, or a join's last word.
  case other
}

/// What identifies a change set in a message.
package struct ChangeSetHeaderFacts: Sendable {
  package var chain: ChainID
  package var reference: ChangeSetReference
}

extension InboundMessage {
  /// What checkers look at.
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
        Dictionary(have.stores.map { ($0.store, $0.vector) }, uniquingKeysWith: { old, _ in old }))
    case .records(let records): .records(records.map(\.record.id))
    case .addresses, .done: .other
    }
  }
}

/// What a message is for: whoever measures tells them apart.
package enum Traffic: Hashable, Sendable {
  /// Change sets.
  case changes
  /// What a device says of its own vector, of what changed.
  case progress
  /// Statements.
  case statements
  /// Full `Have`s, records, addresses.
  case other
}

extension InboundMessage {
  /// What the message is for.
  package var traffic: Traffic {
    switch body {
    case .batch: .changes
    case .have(let have) where !have.statements.isEmpty: .statements
    case .have(let have) where !have.isWhole && !have.listsAll: .progress
    case .have, .records, .addresses, .done: .other
    }
  }
}
