internal import KithCrypto

/// A record with only those of its signatures that hold in an account. Making one is what membership
/// costs; it needs no state, and so no lock.
struct CheckedRecord: Sendable {
  let record: Record

  /// - Complexity: one verification a signature.
  init(_ record: Record, account: AccountID) {
    self.record = record.with(signatures: record.validSignatures(account: account))
  }
}
