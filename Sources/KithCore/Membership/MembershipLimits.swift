/// The bounds of everything that membership takes from outside (design, section 12, promise 8).
public enum MembershipLimits {
  /// The most records that a roster keeps.
  public static let records = 4_096
  /// How many of them only revocations may fill, so that no flood of others keeps one out.
  public static let recordsForRevocations = 512
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
  /// The most recipients that an epoch's record names; lockboxes serve the others.
  public static let recipients = 80
  /// The most devices that a revocation lists as staying.
  public static let keeps = 340
  /// The most bytes of records that a session carries which is for membership only (section 8).
  public static let strangerBytes = 16 << 10
  /// The most epochs that a keyring holds open.
  public static let openEpochs = 1_024
  /// The most lockboxes that one member makes at once.
  public static let lockboxesAtOnce = 256
  /// The most shared keys that a keyring holds ready.
  public static let sharedBoxes = 512
  /// The most bytes of an encoded pairing reply.
  public static let joinReplyBytes = 4 << 20
  /// The most bytes of the pairing messages inside the handshake.
  public static let pairingPayloadBytes = 1 << 10
}
