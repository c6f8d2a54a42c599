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

/// The membership records of one account, and what follows from them (design, section 7).
///
/// Members, digest and records are a function of the set of records held, whatever their order. At the
/// bounds of ``MembershipLimits`` that is, too, what rosters agree on that have exchanged theirs
/// (``RosterSelection``).
public struct Roster: Sendable {
  /// The account.
  public let account: AccountID

  /// Everything that bears valid signatures, by id, also what is not attached yet.
  private var held: [Digest256: Record] = [:]

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
  public var pendingCount: Int { held.count - records.count }

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
    let wasHeld = held[id]
    if let rejection = take(record) { return .rejected(rejection) }
    if let wasHeld, wasHeld == held[id] { return before == nil ? .notYet : .known }
    evaluate()
    guard let after = self.record(id) else {
      return held[id] == nil ? .rejected(.full) : .notYet
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
  mutating func take(all new: [CheckedRecord]) -> (fresh: [Record], gone: [Digest256]) {
    let before = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    for record in new { _ = take(record) }
    evaluate()
    let fresh = records.filter { before[$0.id] != $0 }
    let gone = before.keys.filter { !membership.attached.contains($0) }
    return (fresh, gone.sorted())
  }

  /// The attached record with an id.
  public func record(_ id: Digest256) -> Record? {
    membership.attached.contains(id) ? held[id].map(counting) : nil
  }

  /// Holds a record with the signatures that hold, without looking at what follows.
  private mutating func take(_ checked: CheckedRecord) -> RecordRejection? {
    let record = checked.record
    if record.isGenesis, record.id != account.digest { return .wrongAccount }
    let known = held[record.id]?.signatures ?? []
    let valid = record.signatures
    if known.isEmpty {
      guard hasNecessarySigners(record, valid.map(\.signer)) else { return .missingSignature }
    }
    // Signers that are known come first where there are more than a record may have.
    let all = record.with(signatures: known + valid).signatures
    guard all.count > MembershipLimits.signatures else {
      held[record.id] = record.with(signatures: all)
      return nil
    }
    let better = all.filter { isCounting($0.signer, in: record) }
    let others = all.filter { !isCounting($0.signer, in: record) }
    held[record.id] = record.with(
      signatures: Array((better + others).prefix(MembershipLimits.signatures)))
    return nil
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
  private mutating func evaluate() {
    let sorted = held.values.sorted { $0.id < $1.id }
    let everything = Membership(of: sorted)
    let selection = RosterSelection(of: sorted, everything)
    membership = selection.membership
    var bytes = 0
    for (place, record) in selection.excess.enumerated() {
      bytes += record.body.count
      if place >= MembershipLimits.heldBackRecords || bytes > MembershipLimits.heldBackBytes {
        held[record.id] = nil
      }
    }
    let waiting = sorted.filter { !everything.attached.contains($0.id) }
    for record in waiting.dropFirst(MembershipLimits.pendingRecords) { held[record.id] = nil }
    records = selection.kept.map(counting)
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
