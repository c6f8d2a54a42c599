/// The bounds of everything that membership takes from outside (`Docs/Testing.md`, "The promises",
/// promise 8).
public enum MembershipLimits {
  /// The most certificates that a roster keeps, and so one less than the most devices that an account
  /// may ever have had.
  public static let certificates = 1_024
  /// The most revocations of one device that a roster keeps. Where there are so many, none of the
  /// devices that it enrolled stays, whatever they list.
  public static let revocationsOfDevice = 4
  /// The most epoch records that a roster keeps.
  public static let epochs = 128
  /// The most lockboxes that a roster keeps.
  public static let lockboxes = 4_096
  /// The most renames that a roster keeps.
  public static let renames = 512
  /// The most records of kinds that are not known here that a roster keeps.
  public static let unknownRecords = 32
  /// The share of epochs, lockboxes, renames and unknown records, one in so many, for those that only
  /// revoked devices signed.
  static let shareOfRevoked = 4
  /// The most records that a roster keeps: all of the above, and the genesis.
  public static let records =
    1 + certificates * (1 + revocationsOfDevice) + epochs + lockboxes + renames + unknownRecords
  /// The most records that a roster holds back for which it has no room, should some become free.
  public static let heldBackRecords = 4_096
  /// The most bytes of their bodies.
  public static let heldBackBytes = 4 << 20
  /// The most records that a roster keeps of whose signers it knows none yet; those with the
  /// smallest ids stay.
  public static let pendingRecords = 256
  /// The most bytes of an encoded record.
  public static let recordBytes = 16 << 10
  /// The most bytes of a record's body, so that all the signatures it may gain fit beside it.
  public static let bodyBytes = 12 << 10
  /// The most signatures of a record.
  public static let signatures = 32
  /// The most bytes of UTF-8 of a device's name.
  public static let nameBytes = 64
  /// The most parents that an epoch names.
  public static let parents = 64
  /// The highest generation of an epoch that counts where not all of its parents are known.
  public static let unprovenGeneration: UInt32 = 1 << 31
  /// The most recipients that an epoch's record names; lockboxes serve the others.
  public static let recipients = 80
  /// The most devices that a revocation lists as staying.
  public static let keeps = 340
  /// The most bytes of records that a session carries which is for membership only (section 8).
  public static let strangerBytes = 16 << 10
  /// The most epochs that a keyring holds open.
  public static let openEpochs = 1_024
  /// The most epochs, the newest, that a joining device is given lockboxes of at once; the others come
  /// later.
  static let epochsAtJoining = 64
  /// The most lockboxes that one member makes at once.
  public static let lockboxesAtOnce = 256
  /// The most shared keys that a keyring holds ready.
  public static let sharedBoxes = 512
  /// The most bytes of an encoded pairing reply.
  public static let joinReplyBytes = 4 << 20
  /// The most bytes of the pairing messages inside the handshake.
  public static let pairingPayloadBytes = 1 << 10
}
