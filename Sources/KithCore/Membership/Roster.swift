package import KithCrypto

/// The membership records of one account, and the members that follow from them
/// (`Docs/Protocol.md`, "Membership").
///
/// The order of learning does not matter. At the limits of ``MembershipLimits`` rosters still agree
/// after an exchange (``RosterSelection``).
package struct Roster: Sendable {
  package let account: AccountID

  /// The attached records, and others with valid signatures that wait for a known signer.
  private var candidates: [Digest256: Record] = [:]

  /// Attached records beyond the limits. Most changes do not look at them: see ``evaluate()``.
  private var deferred: [Digest256: Record] = [:]
  private var deferredBytes = 0

  private(set) var membership = Membership()

  /// The kept records with the signatures that count, ascending by id: stored, sent and digested.
  package private(set) var records: [Record] = []

  /// The digest that handshakes compare, over the account and ``records``.
  package private(set) var digest: Digest256

  package init(account: AccountID) {
    self.account = account
    digest = Self.digest(of: [], in: account)
  }

  /// The number of records without a known signer, or beyond the limits.
  package var pendingCount: Int { candidates.count - records.count + deferred.count }

  /// Learns records in any order, and returns those to store and relay, ascending by id: new or
  /// improved ones, and earlier ones attached only now.
  ///
  /// - Complexity: O(*r* + *n*) for *n* records, and one verification for each signature.
  package mutating func learn(all new: [Record]) -> [Record] {
    learn(all: new.map { CheckedRecord($0, account: account) })
  }

  mutating func learn(all new: [CheckedRecord]) -> [Record] { update(with: new).fresh }

  /// As ``learn(all:)``; also returns the dropped records, to be deleted.
  ///
  /// - Complexity: O(*n*) if no record is new.
  mutating func update(with new: [CheckedRecord]) -> (fresh: [Record], gone: [Digest256]) {
    var hasChanged = false
    for record in new where addCandidate(record) { hasChanged = true }
    guard hasChanged else { return ([], []) }
    let before = Dictionary(uniqueKeysWithValues: records.map { ($0.id, $0) })
    evaluate()
    let fresh = records.filter { before[$0.id] != $0 }
    let gone = before.keys.filter { !membership.attached.contains($0) }
    return (fresh, gone.sorted())
  }

  /// Returns nil unless the record is attached.
  package func record(_ id: Digest256) -> Record? {
    membership.attached.contains(id) ? candidates[id].map(counting) : nil
  }

  /// Adds a record to the candidates without computing the members. Returns whether it or some of
  /// its signatures are new, so that the members may change.
  private mutating func addCandidate(_ checked: CheckedRecord) -> Bool {
    let record = checked.record
    if record.isGenesis, record.id != account.digest { return false }
    let before = candidates[record.id]
    let known = (before ?? deferred[record.id])?.signatures ?? []
    let valid = record.signatures
    guard !known.isEmpty || hasNecessarySigners(record, valid.map(\.signer)) else { return false }
    var merged = record.with(signatures: known + valid)
    if merged.signatures.count > MembershipLimits.signatures {
      // Signatures of known signers come first.
      let better = merged.signatures.filter { isCounting($0.signer, in: record) }
      let others = merged.signatures.filter { !isCounting($0.signer, in: record) }
      merged = record.with(
        signatures: Array((better + others).prefix(MembershipLimits.signatures)))
    }
    guard merged != before else { return false }
    // Considered again, because its sender has space for it.
    if let back = deferred.removeValue(forKey: record.id) { deferredBytes -= back.body.count }
    candidates[record.id] = merged
    return true
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

  /// Computes the members, then drops records beyond the limits.
  ///
  /// Deferred records would be dropped again. They are considered only if there may be space, or if
  /// they exceed their limit by an eighth.
  private mutating func evaluate() {
    let (before, countsBefore) = (membership, Self.countsByKind(records))
    var selection = choose()
    if !deferred.isEmpty,
      isTooMuch(selection.excess) || hasFreedSpace(in: selection, since: before, countsBefore)
    {
      candidates.merge(deferred) { new, _ in new }
      deferred = [:]
      deferredBytes = 0
      selection = choose()
    }
    membership = selection.membership
    // Leaves some space, so that this is not repeated soon.
    let eighths = deferred.isEmpty ? 8 : 9
    let mostRecords = MembershipLimits.deferredRecords * eighths / 8
    let mostBytes = MembershipLimits.deferredBytes * eighths / 8
    for record in selection.excess {
      candidates[record.id] = nil
      guard deferred.count < mostRecords, deferredBytes + record.body.count <= mostBytes else {
        continue
      }
      deferred[record.id] = record
      deferredBytes += record.body.count
    }
    records = selection.kept.map(counting)
    digest = Self.digest(of: records, in: account)
  }

  private static func digest(of records: [Record], in account: AccountID) -> Digest256 {
    var hasher = Blake2b.Hasher()
    hasher.update(Array("kith roster v1".utf8) + [0])
    hasher.update(account.digest)
    for record in records {
      hasher.update(record.id)
      hasher.update([UInt8(truncatingIfNeeded: record.signatures.count)])
      for signature in record.signatures {
        hasher.update(signature.signer)
        hasher.update(signature.signature)
      }
    }
    return hasher.digest256()
  }

  /// Chooses the records to keep, and drops excess ones without a known signer.
  private mutating func choose() -> RosterSelection {
    let sorted = candidates.values.sorted { $0.id < $1.id }
    let everything = Membership(of: sorted)
    let waiting = sorted.filter { !everything.attached.contains($0.id) }
    for record in waiting.dropFirst(MembershipLimits.pendingRecords) { candidates[record.id] = nil }
    return RosterSelection(of: sorted, everything)
  }

  /// Returns whether deferring these too would exceed the limits. Renames and unknown kinds do not
  /// count: they are dropped first.
  private func isTooMuch(_ excess: [Record]) -> Bool {
    let excess = excess.filter { record in
      switch record.kind {
      case .rename, .unknown: false
      case .genesis, .certificate, .revocation, .epoch, .lockbox: true
      }
    }
    guard !excess.isEmpty else { return false }
    return deferred.count + excess.count > MembershipLimits.deferredRecords * 9 / 8
      || excess.reduce(deferredBytes) { $0 + $1.body.count } > MembershipLimits.deferredBytes * 9
        / 8
  }

  /// Returns whether a deferred record may fit now: fewer of a kind are kept, or a device was
  /// revoked or is a member again.
  private func hasFreedSpace(
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

  /// Keeps only the signatures of known signers.
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
