/// The limits of all data that membership takes from outside (`Docs/Testing.md`, "The promises",
/// promise 8).
public enum MembershipLimits {
  /// The maximum number of certificates that a roster keeps. An account may ever have had one
  /// device more.
  public static let certificates = 1_024
  /// The maximum number of revocations of one device that a roster keeps. With so many, every
  /// device that it enrolled is revoked too, whatever they list.
  public static let revocationsOfDevice = 4
  /// The maximum number of epoch records that a roster keeps.
  public static let epochs = 128
  /// The maximum number of lockboxes that a roster keeps.
  public static let lockboxes = 4_096
  /// The maximum number of renames that a roster keeps.
  public static let renames = 512
  /// The maximum number of records of unknown kinds that a roster keeps.
  public static let unknownRecords = 32
  /// The divisor for records that only revoked devices signed: they get this fraction of the room
  /// for epochs, lockboxes, renames and unknown records.
  static let shareOfRevoked = 4
  /// The maximum number of records that a roster keeps: all of the above, and the genesis.
  public static let records =
    1 + certificates * (1 + revocationsOfDevice) + epochs + lockboxes + renames + unknownRecords
  /// The maximum number of records that a roster holds back until there is room for them.
  public static let heldBackRecords = 4_096
  /// The maximum number of bytes of their bodies.
  public static let heldBackBytes = 4 << 20
  /// The maximum number of records without a known signer that a roster keeps; those with the
  /// smallest ids stay.
  public static let pendingRecords = 256
  /// The maximum number of bytes of an encoded record.
  public static let recordBytes = 16 << 10
  /// The maximum number of bytes of a record's body, so that all signatures that it may gain fit.
  public static let bodyBytes = 12 << 10
  /// The maximum number of signatures of a record.
  public static let signatures = 32
  /// The maximum number of UTF-8 bytes of a device's name.
  public static let nameBytes = 64
  /// The maximum number of parents that an epoch names.
  public static let parents = 64
  /// The highest generation of an epoch that counts if not all of its parents are known.
  public static let unprovenGeneration: UInt32 = 1 << 31
  /// The maximum number of recipients in an epoch's record; the others get lockboxes.
  public static let recipients = 80
  /// The maximum number of devices that a revocation lists as staying.
  public static let keeps = 340
  /// The maximum number of bytes of records in a membership-only session.
  public static let strangerBytes = 16 << 10
  /// The maximum number of epochs that a keyring holds open.
  public static let openEpochs = 1_024
  /// The maximum number of epochs, the newest ones, for which a joining device gets lockboxes at
  /// once; the others follow later.
  static let epochsAtJoining = 64
  /// The maximum number of lockboxes that one member makes at once.
  public static let lockboxesAtOnce = 256
  /// The maximum number of shared keys that a keyring caches.
  public static let sharedBoxes = 512
  /// The maximum number of bytes of an encoded pairing reply.
  public static let joinReplyBytes = 4 << 20
  /// The maximum number of bytes of the pairing messages inside the handshake.
  public static let pairingPayloadBytes = 1 << 10
}
