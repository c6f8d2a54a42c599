/// A record with only its valid signatures. The costly check needs no state, so no lock.
struct CheckedRecord: Sendable {
  let record: Record

  /// - Complexity: one verification for each signature.
  init(_ record: Record, account: AccountID) {
    self.record = record.with(signatures: record.validSignatures(account: account))
  }
}
