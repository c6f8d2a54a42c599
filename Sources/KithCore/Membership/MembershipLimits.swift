/// The limits of all outside data of membership (`Docs/Testing.md`, "The promises", promise 8).
package enum MembershipLimits {
  /// The maximum number of certificates that a roster keeps. An account may ever have had one
  /// device more.
  package static let certificates = 1_024
  /// The maximum number of revocations of one device in a roster. With so many, every device that
  /// it enrolled is revoked too.
  package static let revocationsOfDevice = 4
  /// The maximum number of epoch records that a roster keeps.
  package static let epochs = 128
  /// The maximum number of lockboxes that a roster keeps.
  package static let lockboxes = 4_096
  /// The maximum number of renames that a roster keeps.
  package static let renames = 512
  /// The maximum number of records of unknown kinds that a roster keeps.
  package static let unknownRecords = 32
  /// The divisor for records that only revoked devices signed: their share of the places for
  /// epochs, lockboxes, renames and unknown records.
  static let shareOfRevoked = 4
  /// The maximum number of records that a roster keeps: all of the above, and the genesis.
  package static let records =
    1 + certificates * (1 + revocationsOfDevice) + epochs + lockboxes + renames + unknownRecords
  /// The maximum number of records that a roster holds back until there is space.
  package static let heldBackRecords = 4_096
  /// The maximum number of bytes of their bodies.
  package static let heldBackBytes = 4 << 20
  /// The maximum number of kept records without a known signer; the smallest ids stay.
  package static let pendingRecords = 256
  /// The maximum number of bytes of an encoded record.
  package static let recordBytes = 16 << 10
  /// The maximum number of bytes of a record's body, so that all signatures that it may gain fit.
  package static let bodyBytes = 12 << 10
  /// The maximum number of signatures of a record.
  package static let signatures = 32
  /// The maximum number of UTF-8 bytes of a device's name.
  package static let nameBytes = 64
  /// The maximum number of parents that an epoch names.
  package static let parents = 64
  /// The highest generation that counts if not all of an epoch's parents are known.
  package static let unprovenGeneration: UInt32 = 1 << 31
  /// The maximum number of recipients in an epoch's record; the others get lockboxes.
  package static let recipients = 80
  /// The maximum number of devices that a revocation lists as staying.
  package static let keeps = 340
  /// The maximum number of bytes of records in a membership-only session.
  package static let strangerBytes = 16 << 10
  /// The maximum number of epochs that a keyring holds open.
  package static let openEpochs = 1_024
  /// The number of newest epochs for which a joining device gets lockboxes at once; others follow.
  static let epochsAtJoining = 64
  /// The maximum number of lockboxes that one member makes at once.
  package static let lockboxesAtOnce = 256
  /// The maximum number of shared keys that a keyring caches.
  package static let sharedBoxes = 512
  /// The maximum number of bytes of an encoded pairing reply.
  package static let joinReplyBytes = 4 << 20
  /// The maximum number of bytes of the pairing messages inside the handshake.
  package static let pairingPayloadBytes = 1 << 10
}
