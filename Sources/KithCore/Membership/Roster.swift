public import KithCrypto

/// What became of a record that was learnt.
public enum Learned: Hashable, Sendable {
  /// It is new, and has its place.
  case new
  /// Nothing in it is new.
  case known
  /// It was known, and has another signature that counts.
  case improved
  /// Its signatures hold, but its signers are not known yet; kept, within a bound.
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
  /// The roster is full, or as full as it may be with records of that kind.
  case full
}

/// The membership records of one account, and what follows from them (design, section 7).
///
/// Members, digest and records are a function of the set of records learnt, whatever their order,
/// as long as the bounds of ``MembershipLimits`` are not reached.
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

  /// The number of records kept whose signers are not known yet.
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
  mutating func learn(all new: [CheckedRecord]) -> [Record] {
    let before = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    for record in new { _ = take(record) }
    evaluate()
    return records.filter { before[$0.id] != $0 }
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
      guard hasRoom(for: record) else { return .full }
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

  private func hasRoom(for record: Record) -> Bool {
    let limit = MembershipLimits.records
    // What waits without a place never keeps out what has one; `evaluate` trims it.
    if case .revocation = record.kind { return records.count < limit }
    if record.isGenesis { return true }
    return records.count < limit - MembershipLimits.recordsForRevocations
  }

  /// Computes what follows from the records, then lets go of what waits beyond the bounds.
  private mutating func evaluate() {
    let sorted = held.values.sorted { $0.id < $1.id }
    membership = Membership(of: sorted)
    let attached = sorted.filter { membership.attached.contains($0.id) }
    let waiting = sorted.filter { !membership.attached.contains($0.id) }
    for record in waiting.dropFirst(MembershipLimits.pendingRecords) { held[record.id] = nil }
    records = attached.map(counting)
    trim()
  }

  /// A batch may attach more at once than the roster keeps. Then what came last by id goes, of
  /// lockboxes, renames, unknown records and epochs first, for without certificates nothing holds.
  private mutating func trim() {
    let excess = records.count - MembershipLimits.records
    guard excess > 0 else { return }
    let order = records.sorted {
      ($0.kind.rank, $1.id) > ($1.kind.rank, $0.id)
    }
    for record in order.prefix(excess) { held[record.id] = nil }
    let sorted = held.values.sorted { $0.id < $1.id }
    membership = Membership(of: sorted)
    records = sorted.filter { membership.attached.contains($0.id) }.map(counting)
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

extension Record.Kind {
  /// What a roster lets go of first has the highest rank.
  fileprivate var rank: Int {
    switch self {
    case .genesis: 0
    case .revocation: 1
    case .certificate: 2
    case .epoch: 3
    case .lockbox: 4
    case .rename: 5
    case .unknown: 6
    }
  }
}
