internal import KithCrypto

/// The values that judging change sets needs besides their store.
struct Judge {
  /// This device, and the chain under which it publishes.
  var own: DeviceID
  var ownChain: ChainID?
  let roster: Roster
  /// The part of the authors' budgets over all stores that is left for the store.
  var budgets: [DeviceID: AuthorBudget] = [:]
  /// Opens many entries at once; nil: one after the other.
  var repeater: InboundMessage.Repeater?
}

/// A store's verdict on a change set at this moment (`Docs/Protocol.md`, "Sessions").
enum Judgement {
  /// Its entries count, except those that are wrong for ever.
  case judged(OpenedChangeSet)
  /// Unknown author or epoch, or an entry that only a revocation would explain.
  case notYet
  /// Signed for another store than it was sent for.
  case misdirected
  /// Signed by a device that is revoked: it changes nothing, and is not asked for again.
  case void
  /// More of one author than a node keeps.
  case tooMuch
}

/// The entries of a change set, opened.
struct OpenedChangeSet {
  var entries: [(index: UInt32, entry: Entry, digest: Digest256)] = []
  /// Wrong for ever, although validly signed.
  var quarantined: [UInt32] = []
}

extension StoreReplica {
  /// Judges a change set whose signature holds. Quarantine is judged from its own bytes alone, one
  /// entry at a time.
  func judge(_ changeSet: ChangeSet, by judge: Judge, _ keyring: inout Keyring) -> Judgement {
    let header = changeSet.header
    let author = header.chain.device
    guard !judge.roster.isRevoked(author) else { return .void }
    guard judge.roster.isMember(author), let certificate = judge.roster.certificate(of: author),
      let epoch = keyring[header.epoch],
      let box = keyring.sharedBox(epoch: header.epoch, author: certificate)
    else { return .notYet }
    guard epoch.storeTag(of: identifier) == header.storeTag else { return .misdirected }
    guard log.chains[header.chain] != nil || hasPlace(for: header.chain, own: judge.own) else {
      return .tooMuch
    }
    // A known change set counts already; repairing it only gives back entries that it lost.
    if author != judge.own, !log.knows(changeSet.reference) {
      let room = judge.budgets[author]?.room(in: self) ?? 0
      guard log.weights[author] + changeSet.weight <= room else { return .tooMuch }
    }
    return judge.open(changeSet, box: box)
  }

  /// Whether the store takes another chain. Places for this device's own stay free.
  private func hasPlace(for chain: ChainID, own: DeviceID) -> Bool {
    chain.device == own
      || log.chains.count < Limits.chainsPerStore - Limits.incarnations
        && log.chains.keys.count { $0.device == chain.device } < Limits.chainsPerDevice
  }
}

extension Judge {
  /// Opens every entry of a change set.
  func open(_ changeSet: ChangeSet, box: SharedBox) -> Judgement {
    let header = changeSet.header
    let sealed = changeSet.stored.entries.sorted { $0.key < $1.key }
    let results = values(sealed.count, by: 32, with: repeater) { number in
      OpenedEntry(sealed[number].value, index: sealed[number].key, of: header, with: box)
    }
    var opened = OpenedChangeSet()
    for (item, result) in zip(sealed, results) {
      guard let result else {
        opened.quarantined.append(item.key)
        continue
      }
      // An entry may carry another device's stamp only if that device is revoked.
      let writer = result.entry.stamp.device
      guard writer == header.chain.device || roster.isRevoked(writer) else { return .notYet }
      opened.entries.append((item.key, result.entry, result.digest))
    }
    return .judged(opened)
  }
}

/// An entry out of its box, with the digest of its plaintext.
private struct OpenedEntry: Sendable {
  let entry: Entry
  let digest: Digest256

  /// Nil if the entry is wrong for ever.
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
  /// fallback's claim is earlier than its entry's (`Docs/Protocol.md`, "Shown values").
  fileprivate func isPossible(in header: ChangeSetHeader) -> Bool {
    guard stamp.clock <= header.clock, claim.clock <= header.clock else { return false }
    guard let fallback else { return true }
    return fallback.claim < claim && !isRemoval
  }
}
