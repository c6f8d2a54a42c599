package import KithCrypto

/// Objects that a member or a former member can make, and its own replica would not.
extension OutboundObject {
  /// The same under another name.
  package func again(as name: ObjectName, nonce: BoxNonce) -> OutboundObject {
    var object = OutboundObject(
      name: name, parcel: parcel, records: records, batches: batches, account: account,
      epoch: epoch, keys: keys, nonce: nonce)
    object.parcel.part.group ^= 1
    return object
  }

  package var isHandover: Bool { handover != nil }

  /// It says that it brings so many more change sets of each chain.
  package mutating func claim(more: UInt64) {
    for index in parcel.stores.indices {
      for chain in parcel.stores[index].have.vector.keys {
        parcel.stores[index].have.vector[chain]? += more
      }
    }
  }

  /// It is above so many more change sets of each chain.
  package mutating func rise(by more: UInt64) {
    for index in parcel.stores.indices {
      for (chain, sequence) in parcel.stores[index].have.vector {
        parcel.stores[index].above[chain] = sequence + more
        parcel.stores[index].have.vector[chain] = sequence + more + 1
      }
    }
  }

  /// It brings change sets without these entries.
  package mutating func leaveOut(_ isLeftOut: (ChangeSetReference, UInt32) -> Bool) {
    for batch in batches.indices {
      for index in batches[batch].changeSets.indices {
        let kept = batches[batch].changeSets[index]
        for entry in kept.indices where isLeftOut(kept.reference, entry) {
          _ = batches[batch].changeSets[index].drop(entry)
        }
      }
    }
  }

  /// It brings no change sets.
  package mutating func empty() { batches = [] }

  package mutating func replace(_ names: [ObjectName]) { parcel.replaces = names.sorted() }

  /// A handover to an epoch that nobody knows.
  package static func handover(
    from older: EpochKeys, as name: ObjectName, in roster: Roster, by keys: DeviceKeys,
    entropy: inout some Entropy
  ) -> [UInt8]? {
    let epoch = EpochKeys(secret: EpochSecret(random: &entropy), generation: older.generation + 3)
    var parcel = Parcel(by: keys.id, at: HybridTime(rawValue: 1))
    parcel.recipients = roster.sortedMembers.map(\.device)
    let boxes = roster.sortedMembers.compactMap { epoch.sealed(to: $0.boxKey, entropy: &entropy) }
    let records = roster.records.sorted(by: Record.isSentBefore).messages()
    let sealed = SealedObject.seal(
      parcel.encoded(with: records), named: name, under: epoch, in: roster.account, by: keys,
      nonce: entropy.draw())
    return Handover(to: epoch.id, boxes: boxes, parcel: sealed)
      .sealed(under: older, nonce: entropy.draw())
  }
}
