internal import KithCrypto

/// Values for judging change sets, besides their store.
struct Judge {
  var own: DeviceID
  var ownChain: ChainID?
  let roster: Roster
  /// The part of authors' budgets that other stores leave.
  var budgets: [DeviceID: AuthorBudget] = [:]
  /// Opens entries concurrently; nil: serially.
  var repeater: InboundMessage.Repeater?
}

/// A store's present verdict on a change set (`Docs/Protocol.md`, "Entries and change sets").
enum Judgement {
  /// Its entries count, except quarantined ones.
  case judged(OpenedChangeSet)
  /// Unknown author or epoch, or an entry that only a revocation would explain.
  case notYet
  /// Signed for another store.
  case misdirected
  /// Its author is revoked: it changes nothing and is not requested again.
  case void
  /// Beyond its author's bytes or the store's chains.
  case tooMuch
}

struct OpenedChangeSet {
  var entries: [(index: UInt32, entry: Entry, digest: Digest256)] = []
  /// Indices of entries that are validly signed, but never valid.
  var quarantined: [UInt32] = []
}

extension StoreReplica {
  /// Judges a change set with a valid signature. Quarantine depends on its own bytes alone, entry
  /// by entry.
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
    // A known change set counts already; repair only returns lost entries.
    if author != judge.own, !log.knows(changeSet.reference) {
      let room = judge.budgets[author]?.room(in: self) ?? 0
      guard log.weights[author] + changeSet.weight <= room else { return .tooMuch }
    }
    return judge.open(changeSet, box: box)
  }

  /// Keeps places free for this device's own chains.
  private func hasPlace(for chain: ChainID, own: DeviceID) -> Bool {
    chain.device == own
      || log.chains.count < Limits.chainsPerStore - Limits.incarnations
        && log.incarnations[chain.device]?.count ?? 0 < Limits.chainsPerDevice
  }
}

extension Judge {
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
      // An entry may carry another device's stamp only if that device is revoked, or if it removes
      // that device's value again.
      let writer = result.entry.stamp.device
      guard
        writer == header.chain.device || roster.isRevoked(writer) || result.entry.isRemoval
      else { return .notYet }
      opened.entries.append((item.key, result.entry, result.digest))
    }
    return .judged(opened)
  }
}

private struct OpenedEntry: Sendable {
  let entry: Entry
  let digest: Digest256

  /// Nil if the entry can never be valid.
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
  /// Whether no clock is later than publishing, and a fallback's claim is earlier than its entry's
  /// (`Docs/Protocol.md`, "Entries and change sets").
  fileprivate func isPossible(in header: ChangeSetHeader) -> Bool {
    guard stamp.clock <= header.clock, claim.clock <= header.clock else { return false }
    guard let fallback else { return true }
    return fallback.claim < claim && !isRemoval
  }
}
