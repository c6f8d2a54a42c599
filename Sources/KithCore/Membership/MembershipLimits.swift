/// The limits of all outside data of membership (`Docs/Testing.md`, "The promises", promise 8).
/// Most are maximum numbers.
package enum MembershipLimits {
  /// Certificates of a roster; the first device's is in the genesis.
  package static let certificates = 1_024
  /// Revocations of one device in a roster. With so many, every device that it enrolled is revoked
  /// too.
  package static let revocationsOfDevice = 4
  /// Epoch records of a roster.
  package static let epochs = 128
  /// Lockboxes of a roster.
  package static let lockboxes = 4_096
  /// Renames of a roster.
  package static let renames = 512
  /// Records of unknown kinds of a roster: all that later versions can add, since a device that does
  /// not know them chooses the same ones.
  package static let unknownRecords = 512
  /// Bytes of a body of an unknown kind.
  package static let unknownBodyBytes = 1 << 10
  /// Records that only revoked devices signed get one in so many places of the four kinds above.
  static let shareOfRevoked = 4
  /// All records of a roster: those above, and the genesis.
  package static let records =
    1 + certificates * (1 + revocationsOfDevice) + epochs + lockboxes + renames + unknownRecords
  /// Records that a roster defers until there is space.
  package static let deferredRecords = 4_096
  /// Bytes of their bodies.
  package static let deferredBytes = 4 << 20
  /// Candidates without a known signer; the smallest ids stay.
  package static let pendingRecords = 256
  /// Bytes of an encoded record.
  package static let recordBytes = 16 << 10
  /// Bytes of a body, so that all signatures fit.
  package static let bodyBytes = 12 << 10
  /// Signatures of a record.
  package static let signatures = 32
  /// UTF-8 bytes of a device's name.
  package static let nameBytes = 64
  /// Parents of an epoch.
  package static let parents = 64
  /// The highest generation that counts if an epoch has unknown parents.
  package static let unprovenGeneration: UInt32 = 1 << 31
  /// Recipients in an epoch's record; the others get lockboxes.
  package static let recipients = 80
  /// Devices that a revocation lists as staying.
  package static let keeps = 340
  /// Bytes of records in a membership-only session.
  package static let strangerBytes = 16 << 10
  /// Open epochs of a keyring.
  package static let epochKeys = 1_024
  /// Newest epochs for which a joining device gets lockboxes at once; others follow.
  static let epochsAtJoining = 64
  /// Lockboxes that one member makes at once.
  package static let lockboxesAtOnce = 256
  /// Shared keys in a keyring's cache.
  package static let sharedBoxes = 512
  /// Bytes of an encoded pairing reply.
  package static let joinReplyBytes = 4 << 20
  /// Bytes of a pairing payload inside the handshake.
  package static let pairingPayloadBytes = 1 << 10
}
