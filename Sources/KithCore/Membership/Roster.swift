public import KithCrypto

/// What became of a record that was learnt.
public enum Learned: Hashable, Sendable {
  /// It is new, and has its place.
  case new
  /// Nothing in it is new.
  case known
  /// It was known, and has another signature that counts.
  case improved
  /// Its signatures hold, but its signers are not known yet, or there is no room for it; kept, within a
  /// bound.
  case notYet
  /// It changed nothing.
  case rejected(RecordRejection)
}

/// Why a record changed nothing.
public enum RecordRejection: String, Error, Hashable, Sendable {
  /// It is the genesis of another account.
  case wrongAccount
  /// A signature that its kind demands is missing or forged: of a genesis the recovery key's and
  /// the first device's, of a certificate the device's own, of others any.
  case missingSignature
  /// The roster is as full as it may be with records of that kind, and others come first.
  case full
}

/// The membership records of one account, and what follows from them (`Docs/Protocol.md`,
/// "Membership").
///
/// Members, digest and records are a function of the set of records held, whatever their order. At the
/// bounds of ``MembershipLimits`` that is, too, what rosters agree on that have exchanged theirs
/// (``RosterSelection``).
public struct Roster: Sendable {
  /// The account.
  public let account: AccountID

  /// The attached records, and those that bear valid signatures and are not attached yet, by id.
  private var held: [Digest256: Record] = [:]

  /// Attached records for which there is no room, by id. They are no part of the work of each change:
  /// see ``evaluate()``.
  private var heldBack: [Digest256: Record] = [:]
  private var heldBackBytes = 0

  /// What follows from the records.
  private(set) var membership = Membership()

  /// The attached records with the signatures that count, ascending by id: what is stored, sent
  /// and digested.
  public private(set) var records: [Record] = []

  /// A roster without records.
  public init(account: AccountID) {
    self.account = account
  }

  /// The number of records held whose signers are not known yet, or for which there is no room.
  public var pendingCount: Int { held.count - records.count + heldBack.count }

  /// Takes a record in, whatever it holds.
  ///
  /// It may give others, learnt before, their place; ``learn(all:)`` tells of those too.
  /// - Complexity: O(*r*) in the records held, and one verification for each signature.
  public mutating func learn(_ record: Record) -> Learned {
    learn(CheckedRecord(record, account: account))
  }

  private mutating func learn(_ record: CheckedRecord) -> Learned {
    let id = record.record.id
    let before = self.record(id)
    switch take(record) {
    case .rejected(let rejection): return .rejected(rejection)
    case .nothingNew: return before == nil ? .notYet : .known
    case .held: evaluate()
    }
    guard let after = self.record(id) else {
      return held[id] == nil && heldBack[id] == nil ? .rejected(.full) : .notYet
    }
    guard let before else { return .new }
    return before == after ? .known : .improved
  }

  /// Takes records in, in any order, and returns those that are new or improved by them, also
  /// those learnt before that have their place only now: what is to be stored and passed on,
  /// ascending by id. What is rejected is left out.
  ///
  /// - Complexity: O(*r* + *n*) for *n* records, and one verification for each signature.
  public mutating func learn(all new: [Record]) -> [Record] {
    learn(all: new.map { CheckedRecord($0, account: account) })
  }

  /// The same, of records whose signatures were checked before.
  ///
  /// - Complexity: O(*r* + *n*) for *n* records.
  mutating func learn(all new: [CheckedRecord]) -> [Record] { take(all: new).fresh }

  /// The same, and which records lost their place: what is not to be stored any longer.
  ///
  /// - Complexity: O(*n*) where nothing is new.
  mutating func take(all new: [CheckedRecord]) -> (fresh: [Record], gone: [Digest256]) {
    var hasChanged = false
    for record in new where take(record) == .held { hasChanged = true }
    guard hasChanged else { return ([], []) }
    let before = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    evaluate()
    let fresh = records.filter { before[$0.id] != $0 }
    let gone = before.keys.filter { !membership.attached.contains($0) }
    return (fresh, gone.sorted())
  }

  /// The attached record with an id.
  public func record(_ id: Digest256) -> Record? {
    membership.attached.contains(id) ? held[id].map(counting) : nil
  }

  /// What came of holding a record.
  private enum Taken: Equatable {
    /// It is new, or has signatures that are: what follows from the records may change.
    case held
    /// It was held with these signatures before.
    case nothingNew
    /// It is none of this account's, or nobody who must has signed it.
    case rejected(RecordRejection)
  }

  /// Holds a record with the signatures that hold, without looking at what follows.
  private mutating func take(_ checked: CheckedRecord) -> Taken {
    let record = checked.record
    if record.isGenesis, record.id != account.digest { return .rejected(.wrongAccount) }
    let before = held[record.id]
    let known = (before ?? heldBack[record.id])?.signatures ?? []
    let valid = record.signatures
    if known.isEmpty {
      guard hasNecessarySigners(record, valid.map(\.signer)) else {
        return .rejected(.missingSignature)
      }
    }
    var taken = record.with(signatures: known + valid)
    if taken.signatures.count > MembershipLimits.signatures {
      // Signers that are known come first where there are more than a record may have.
      let better = taken.signatures.filter { isCounting($0.signer, in: record) }
      let others = taken.signatures.filter { !isCounting($0.signer, in: record) }
      taken = record.with(
        signatures: Array((better + others).prefix(MembershipLimits.signatures)))
    }
    guard taken != before else { return .nothingNew }
    // A record that was held back is looked at again: its sender has room for it.
    if let back = heldBack.removeValue(forKey: record.id) { heldBackBytes -= back.body.count }
    held[record.id] = taken
    return .held
  }

  private func hasNecessarySigners(_ record: Record, _ signers: [SigningPublicKey]) -> Bool {
    switch record.kind {
    case .genesis(let genesis):
      signers.contains(genesis.recoverySigningKey)
        && signers.contains(genesis.firstDevice.device)
    case .certificate(let certificate): signers.contains(certificate.device)
    case .epoch, .lockbox, .revocation, .rename, .unknown: !signers.isEmpty
    }
  }

  /// Computes what follows from the records, then lets go of what waits beyond the bounds.
  ///
  /// It chooses among the kept and the new records: one that was given up would be given up again,
  /// until room comes free. So a change costs what the kept records do, and not those held back; these
  /// are looked at where room may have come free, and where they are an eighth too many.
  private mutating func evaluate() {
    let (before, countsBefore) = (membership, Self.countsByKind(records))
    var selection = choose()
    if !heldBack.isEmpty,
      isTooMuch(selection.excess) || hasRoomComeFree(in: selection, since: before, countsBefore)
    {
      held.merge(heldBack) { new, _ in new }
      heldBack = [:]
      heldBackBytes = 0
      selection = choose()
    }
    membership = selection.membership
    // After all were looked at there is to be room for more, so that it is not soon done again.
    let eighths = heldBack.isEmpty ? 8 : 9
    let mostRecords = MembershipLimits.heldBackRecords * eighths / 8
    let mostBytes = MembershipLimits.heldBackBytes * eighths / 8
    for record in selection.excess {
      held[record.id] = nil
      guard heldBack.count < mostRecords, heldBackBytes + record.body.count <= mostBytes else {
        continue
      }
      heldBack[record.id] = record
      heldBackBytes += record.body.count
    }
    records = selection.kept.map(counting)
  }

  /// Chooses what is kept of the records held, and lets go of those whose signers nobody knows beyond
  /// their bound.
  private mutating func choose() -> RosterSelection {
    let sorted = held.values.sorted { $0.id < $1.id }
    let everything = Membership(of: sorted)
    let waiting = sorted.filter { !everything.attached.contains($0.id) }
    for record in waiting.dropFirst(MembershipLimits.pendingRecords) { held[record.id] = nil }
    return RosterSelection(of: sorted, everything)
  }

  /// Whether so many records would be held back with these that others have to go. Not for renames, nor
  /// for kinds that are not known here, which would be the first to go: where there is no room these
  /// are forgotten at once.
  private func isTooMuch(_ excess: [Record]) -> Bool {
    let excess = excess.filter { record in
      switch record.kind {
      case .rename, .unknown: false
      case .genesis, .certificate, .revocation, .epoch, .lockbox: true
      }
    }
    guard !excess.isEmpty else { return false }
    return heldBack.count + excess.count > MembershipLimits.heldBackRecords * 9 / 8
      || excess.reduce(heldBackBytes) { $0 + $1.body.count } > MembershipLimits.heldBackBytes * 9
        / 8
  }

  /// Whether a record that is held back may have a place now: fewer of a kind are kept than before, or
  /// what devices sign counts otherwise, since one was revoked or is a member again.
  private func hasRoomComeFree(
    in selection: RosterSelection, since before: Membership, _ countsBefore: [Int: Int]
  ) -> Bool {
    let counts = Self.countsByKind(selection.kept)
    return countsBefore.contains { counts[$0.key] ?? 0 < $0.value }
      || before.revoked != selection.membership.revoked
      || before.certificates.keys.contains {
        !before.isMember($0) && selection.membership.isMember($0)
      }
  }

  private static func countsByKind(_ records: [Record]) -> [Int: Int] {
    records.reduce(into: [:]) { $0[$1.kind.rank, default: 0] += 1 }
  }

  /// The record with only the signatures of those who are known.
  private func counting(_ record: Record) -> Record {
    let signatures = record.signatures.filter { isCounting($0.signer, in: record) }
    return signatures.count == record.signatures.count
      ? record : record.with(signatures: signatures)
  }

  private func isCounting(_ signer: SigningPublicKey, in record: Record) -> Bool {
    switch record.kind {
    case .genesis(let genesis):
      signer == genesis.recoverySigningKey || signer == genesis.firstDevice.device
    case .certificate(let certificate):
      signer == certificate.device || membership.isKnown(signer)
    default: membership.isKnown(signer)
    }
  }
}
