package import KithCrypto

/// A store for checkers such as the simulator, as plain values that share no code with the model.
package struct StoreInspection: Sendable {
  /// A published entry that is kept.
  package struct Kept: Sendable {
    package var entry: Entry
    /// BLAKE2b-256 of its plaintext.
    package var digest: Digest256
    package var changeSet: ChangeSetReference
    package var index: UInt32
  }

  package struct Shown: Hashable, Sendable {
    package var step: ShownStep
    package var value: EncodedValue

    package init(step: ShownStep, value: EncodedValue) {
      self.step = step
      self.value = value
    }
  }

  package var policy: Policy
  /// Newest first: one, or two with a runner-up.
  package var slots: [Key: [Kept]] = [:]
  /// The entries that the drafts would publish now.
  package var drafted: [Key: Entry] = [:]
  package var shown: [Key: Shown] = [:]
  /// What later writes left of each transaction that is not published.
  package var drafts: [LocalWrite] = []
  /// Each chain's covered sequence.
  package var covered: [ChainID: UInt64] = [:]
  /// Each chain's highest sequence of a signed header received.
  package var received: [ChainID: UInt64] = [:]
  package var changeSets: Set<ChangeSetReference> = []
  package var weights: [DeviceID: Int] = [:]
  package var refusalBytes = 0
  package var historyBytes = 0
  package var quarantined = 0
  package var isBelowHorizon = false
}
