internal import KithCrypto

/// The entries of a change set, opened.
struct Judged {
  var entries: [(index: UInt32, entry: Entry, digest: Digest256)] = []
  /// Wrong for ever, although validly signed.
  var quarantined: [UInt32] = []
}

/// What a change set is worth to this replica at this moment (`Docs/Protocol.md`, "Sessions").
enum Judgement {
  case judged(Judged)
  /// Unknown author or epoch, or an entry that only a revocation would explain.
  case notYet
  /// Signed for another store than it was sent for.
  case misdirected
  /// Signed by a device that is revoked: it changes nothing, and is not asked for again.
  case void
  /// More of one author than a node keeps.
  case tooMuch
}

extension Replica {
  /// Judges a change set whose signature holds; of its author the store takes `room` bytes.
  /// Quarantine is judged from its own bytes alone, one entry at a time.
  mutating func judge(
    _ changeSet: ChangeSet, in store: StoreReplica, room: Int
  ) -> Judgement {
    let header = changeSet.header
    guard !roster.isRevoked(header.chain.device) else { return .void }
    guard roster.isMember(header.chain.device),
      let author = roster.certificate(of: header.chain.device), let epoch = keyring[header.epoch],
      let box = keyring.sharedBox(epoch: header.epoch, author: author)
    else { return .notYet }
    guard epoch.storeTag(of: store.identifier) == header.storeTag else { return .misdirected }
    guard store.log.chains[header.chain] != nil || hasRoom(for: header.chain, in: store) else {
      return .tooMuch
    }
    // What is kept already counts already; mending only gives it back entries that it lost.
    if header.chain.device != keys.id, !store.log.knows(changeSet.reference) {
      let weight = store.log.weights[header.chain.device] + changeSet.weight
      guard weight <= room || Canary.takeEverything.isPlanted else {
        return .tooMuch
      }
    }
    return open(changeSet, box: box)
  }

  /// Whether a store takes another chain. Room for this device's own stays free.
  private func hasRoom(for chain: ChainID, in store: StoreReplica) -> Bool {
    chain.device == keys.id
      || store.log.chains.count < Limits.chainsPerStore - Limits.incarnations
        && store.log.chains.keys.count { $0.device == chain.device } < Limits.chainsPerDevice
  }

  /// Opens every entry of a change set, many at once where the message at hand allows it.
  func open(_ changeSet: ChangeSet, box: SharedBox) -> Judgement {
    let header = changeSet.header
    let sealed = changeSet.stored.entries.sorted { $0.key < $1.key }
    let opened = values(sealed.count, by: 32, with: repeater) { number in
      OpenedEntry(sealed[number].value, index: sealed[number].key, of: header, with: box)
    }
    var judged = Judged()
    for (item, opened) in zip(sealed, opened) {
      guard let opened else {
        judged.quarantined.append(item.key)
        continue
      }
      // Another's stamp stands only where that device is revoked.
      let writer = opened.entry.stamp.device
      guard writer == header.chain.device || roster.isRevoked(writer) else { return .notYet }
      judged.entries.append((item.key, opened.entry, opened.digest))
    }
    return .judged(judged)
  }
}

/// An entry out of its box, with the digest of its plaintext.
private struct OpenedEntry: Sendable {
  let entry: Entry
  let digest: Digest256

  /// Nil where the entry is wrong for ever.
  init?(_ sealed: [UInt8], index: UInt32, of header: ChangeSetHeader, with box: SharedBox) {
    let nonce = BoxNonce(prefix: header.noncePrefix, index: index)
    guard let plaintext = try? box.open(sealed, nonce: nonce),
      let entry = Entry(plaintext: plaintext), entry.isPossible(in: header)
    else { return nil }
    self.entry = entry
    digest = Blake2b.digest256(plaintext)
  }
}

extension Entry {
  /// Whether the clocks can be true: nothing was written or claimed after it was published, and a
  /// fallback's claim is earlier than its entry's (`Docs/Protocol.md`, "What is shown").
  fileprivate func isPossible(in header: ChangeSetHeader) -> Bool {
    guard stamp.clock <= header.clock, claim.clock <= header.clock else { return false }
    guard let fallback else { return true }
    return fallback.claim < claim && !isRemoval
  }
}
