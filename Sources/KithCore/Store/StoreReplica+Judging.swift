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
  mutating func judge(
    _ changeSet: ChangeSet, by judge: Judge, _ keyring: inout Keyring
  ) -> Judgement {
    let header = changeSet.header
    let author = header.chain.device
    guard !judge.roster.isRevoked(author) else { return .void }
    guard judge.roster.isMember(author), let certificate = judge.roster.certificate(of: author),
      let epoch = keyring[header.epoch],
      let box = keyring.sharedBox(epoch: header.epoch, author: certificate)
    else { return .notYet }
    guard tag(under: epoch) == header.storeTag else { return .misdirected }
    guard log.chains[header.chain] != nil || hasSpace(for: header.chain, own: judge.own) else {
      return .tooMuch
    }
    // A known change set counts already; repair only returns lost entries.
    if author != judge.own, !log.knows(changeSet.reference) {
      let capacity = judge.budgets[author]?.capacity(in: self) ?? 0
      guard log.weights[author] + changeSet.weight <= capacity else { return .tooMuch }
    }
    return judge.open(changeSet, box: box, of: certificate.boxKey)
  }

  /// The store's tag; an epoch's id determines its keys, and most change sets have the same epoch.
  private mutating func tag(under epoch: EpochKeys) -> Digest128 {
    if let lastTag, lastTag.epoch == epoch.id { return lastTag.tag }
    let tag = epoch.storeTag(of: identifier)
    lastTag = (epoch.id, tag)
    return tag
  }

  /// Keeps space free for this device's own chains.
  private func hasSpace(for chain: ChainID, own: DeviceID) -> Bool {
    chain.device == own
      || log.chains.count < Limits.chainsPerStore - Limits.incarnations
        && log.incarnations[chain.device]?.count ?? 0 < Limits.chainsPerDevice
  }
}

extension Judge {
  func open(_ changeSet: ChangeSet, box: SharedBox, of author: BoxPublicKey) -> Judgement {
    let sealed = changeSet.indices
    let results =
      if let before = changeSet.opened, before.author == author { before.entries } else {
        OpenedEntries(of: changeSet, sealed, with: box, of: author, repeater).entries
      }
    var opened = OpenedChangeSet()
    for (index, result) in zip(sealed, results) {
      guard let result else {
        opened.quarantined.append(index)
        continue
      }
      // An entry may carry another device's stamp only if that device is revoked, or if it removes
      // that device's value again.
      let writer = result.entry.stamp.device
      guard
        writer == changeSet.header.chain.device || roster.isRevoked(writer)
          || result.entry.isRemoval
      else { return .notYet }
      opened.entries.append((index, result.entry, result.digest))
    }
    return .judged(opened)
  }
}

/// Opens entries before the replica gets them, outside the engine's lock. It may be older than the
/// replica: what is opened depends only on the keys of the epoch and of the author.
package struct EntryOpener: Sendable {
  let roster: Roster
  var keyring: Keyring
}

extension Replica {
  package var entryOpener: EntryOpener { EntryOpener(roster: roster, keyring: keyring) }
}

extension EntryOpener {
  /// Opens the entries of those change sets whose epoch and author are known.
  ///
  /// - Complexity: O(*n*) in the bytes, and one X25519 for each author.
  mutating func open(
    _ checked: [CheckedChangeSet], concurrently repeater: InboundMessage.Repeater?
  ) -> [CheckedChangeSet] {
    let keys = checked.map { checked -> (box: SharedBox, author: BoxPublicKey)? in
      guard case .sound(let changeSet) = checked,
        let author = roster.certificate(of: changeSet.reference.device),
        let box = keyring.sharedBox(epoch: changeSet.header.epoch, author: author)
      else { return nil }
      return (box, author.boxKey)
    }
    // The entries of a single change set are opened at once; otherwise the change sets are.
    let inner = checked.count == 1 ? repeater : nil
    return values(checked.count, by: 8, with: repeater) { number in
      guard case .sound(var changeSet) = checked[number], let key = keys[number] else {
        return checked[number]
      }
      changeSet.opened = OpenedEntries(
        of: changeSet, changeSet.indices, with: key.box, of: key.author, inner)
      return .sound(changeSet)
    }
  }
}

/// The entries of a change set, by index ascending; only opening makes it.
struct OpenedEntries: Hashable, Sendable {
  /// The key of the author with which they were opened.
  fileprivate let author: BoxPublicKey
  /// Nil for one that can never be valid.
  fileprivate let entries: [OpenedEntry?]

  fileprivate init(
    of changeSet: ChangeSet, _ indices: [UInt32], with box: SharedBox, of author: BoxPublicKey,
    _ repeater: InboundMessage.Repeater?
  ) {
    let header = changeSet.header
    let sealed = changeSet.stored.entries
    self.author = author
    entries = values(indices.count, by: 32, with: repeater) { number in
      let index = indices[number]
      return sealed[index].flatMap { OpenedEntry($0, index: index, of: header, with: box) }
    }
  }
}

struct OpenedEntry: Hashable, Sendable {
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
