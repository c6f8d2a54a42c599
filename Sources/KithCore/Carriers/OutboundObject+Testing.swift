package import KithCrypto

/// Objects that a member or a former member can make, and its own replica would not.
extension OutboundObject {
  /// Returns the same object under another name.
  package func again(entropy: inout some Entropy) -> OutboundObject {
    var object = self
    object.seal.name = ObjectName(of: seal.carrierKeys, entropy: &entropy)
    object.seal.nonces = (entropy.draw(), entropy.draw())
    return object
  }

  package var isPiece: Bool { body.isPiece }

  /// It says that it brings so many more change sets of each chain.
  package mutating func claim(more: UInt64) {
    for index in body.parts.indices {
      for chain in body.parts[index].have.vector.keys {
        body.parts[index].have.vector[chain]? += more
      }
    }
  }

  /// It is above so many more change sets of each chain.
  package mutating func rise(by more: UInt64) {
    for index in body.parts.indices {
      for (chain, sequence) in body.parts[index].have.vector {
        body.parts[index].above[chain] = sequence + more
        body.parts[index].have.vector[chain] = sequence + more + 1
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

  /// It brings no change sets, and says that its reader covers everything afterwards.
  package mutating func empty() { batches = [] }

  /// It is later than all others.
  package mutating func raiseLevel() { body.level = UInt8(Limits.objectLevels) }

  /// It needs a piece that is not there.
  package mutating func need(_ piece: ObjectName) { body.pieces = [piece] }

  /// An object under an epoch that only its author made.
  package static func strange(
    after generation: UInt32, in roster: Roster, _ carrierKeys: CarrierKeys, by keys: DeviceKeys,
    entropy: inout some Entropy
  ) -> (name: ObjectName, sealed: [UInt8]) {
    let epoch = EpochKeys(secret: EpochSecret(random: &entropy), generation: generation + 3)
    var body = ObjectBody(by: keys.id, at: HybridTime(rawValue: 1), under: epoch.id)
    body.level = UInt8(Limits.objectLevels)
    body.rosterDigest = roster.digest
    let seal = SealedObject.Seal(
      name: ObjectName(of: carrierKeys, entropy: &entropy), account: roster.account,
      carrierKeys: carrierKeys, keys: keys, epoch: epoch,
      boxes: roster.sortedMembers.compactMap { epoch.sealed(to: $0.boxKey, entropy: &entropy) },
      nonces: (entropy.draw(), entropy.draw()))
    let records = roster.records.sorted(by: Record.isSentBefore).messages()
    return (seal.name, SealedObject.seal(body.encoded(with: records), seal))
  }
}
