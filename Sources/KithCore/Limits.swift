/// The limits of the core. Everything that grows with what peers send has one here.
public enum Limits {
  /// The highest sequence: what a double still counts exactly.
  static let sequence: UInt64 = 1 << 53
  /// Entries in one change set.
  static let entriesPerChangeSet = 8_192
  /// Plaintext bytes after which publishing begins another change set.
  static let changeSetBytes = 1 << 20
  /// Bytes of a change set's header and boxes together. One entry with the largest value and the
  /// largest fallback stays well below; with all covers of a store it still fits into a message.
  static let changeSetBoxBytes = 6 << 20
  /// More bytes than a cover ever takes in a message.
  static let coverBytes = 64
  /// Bytes of change sets after which a batch goes on in another message.
  static let batchPartBytes = 1 << 20
  /// Bytes of one batch that a session may have under way.
  static let batchBytes = 128 << 20
  /// Bytes of change sets after which the rest of an answer waits for room.
  static let pieceBytes = 8 << 20
  /// Bytes of batches on a session after which no other is begun before the network has room.
  static let bytesUnderWay = 8 << 20
  /// Change sets in one message; each takes memory before it is looked at, even an empty one.
  static let changeSetsPerMessage = 8_192
  /// Sealed entries in one message, of all its change sets; so entries of its vectors, addresses, and
  /// digests of one header before that is decoded.
  static let elementsPerMessage = 65_536
  /// The largest message, in bytes; the network refuses larger ones.
  public static let messageBytes = 8 << 20
  /// Bytes of vectors after which a `Have` goes on in another message. What one store's take at
  /// most is less.
  static let haveMessageBytes = 1 << 20
  /// Stores of an account.
  static let stores = 256
  /// Incarnations that one device may use.
  static let incarnations = 16
  /// Chains of one device that a store takes: more than one device may use, for copies of a
  /// directory that never met count their own.
  static let chainsPerDevice = 64
  /// Chains (devices times incarnations) of a store.
  static let chainsPerStore = 4_096
  /// Entries of vectors that are remembered of what one peer said, over all stores; beyond, only of
  /// chains that we know.
  static let vectorEntriesPerSession = 65_536
  /// Drafts of a store kept one by one; beyond, a draft makes way for later ones that write all its
  /// keys, even where those might be refused.
  static let drafts = 4_096
  /// A device keeps this many times the policy's bytes in drafts of a store, and as much in refusals
  /// that its program has not taken.
  static let draftFactor = 8
  /// Removed entries of a store (`Docs/Protocol.md`, "Sessions").
  static let removals = 4_096
  /// Entries of a store set aside for ever that are kept to be passed on.
  static let quarantined = 256
  /// A node keeps this many times the policy's bytes of one author in a store (`Docs/Protocol.md`,
  /// "Sessions").
  static let authorFactor = 8
  /// A node keeps so many bytes of one author, over all stores.
  static let authorBytes = 56 << 20
  /// So many of them in stores that no program on this host has opened.
  static let unopenedAuthorBytes = 16 << 20
  /// A node keeps so many bytes of all other authors together.
  static let authorsBytes = 64 << 20
  /// An author has this much of it even if others have taken it all.
  static let authorFloorBytes = 256 << 10
  /// Bytes of change sets that came or were published at once and are passed on as they are; more are
  /// read from storage when they are sent.
  static let heldBatchBytes = 1 << 20
  /// What each change set and entry counts beside its bytes, so that empty ones are bounded too.
  static let overheadBytes = 256
  /// Statements that are kept of devices about stores; the newest of each.
  static let statements = 16_384
  /// Statements in one message.
  static let statementsPerMessage = 1_024
  /// How often in a session a peer that cannot judge something is sent all records again.
  static let recordsSentAgain = 3
  /// Bytes of a statement's body.
  static let statementBytes = 1_024
  /// Entries of its vector that a statement names.
  static let statementEntries = 8
  /// How long statements wait for others to go with them, in milliseconds, less up to a half of
  /// jitter.
  static let hearsayMilliseconds: UInt64 = 200
  /// How often a device says what it covers of a store, in milliseconds for each member who hears it.
  static let statementPaceMilliseconds: UInt64 = 20
  /// How long a member may be behind what does not change before the network is told to dial it, in
  /// milliseconds.
  static let leftBehindMilliseconds: UInt64 = 60_000
  /// The last wall time that is stamped, in milliseconds since 1970: the end of 2199.
  static let lastWallMilliseconds: UInt64 = 7_258_118_400_000
  /// How far clocks may differ, in milliseconds (`Docs/Protocol.md`, "Clocks").
  package static let clockDifferenceMilliseconds: Int64 = 60_000
  /// How far from its own clock's a device follows another's time, in milliseconds, unless its own
  /// clock is worthless.
  static let followedMilliseconds: UInt64 = 24 * 3_600_000
  /// How long a device goes by what another said of the time, in milliseconds.
  static let claimMilliseconds: UInt64 = 3_600_000
  /// How long an earlier time in a session does not replace a later one, in milliseconds: messages
  /// may be long on their way.
  static let latestClaimMilliseconds: UInt64 = 300_000
  /// How far a hybrid clock may be ahead of a time that is certain before it heals, in milliseconds:
  /// smaller leads pass by themselves.
  package static let healingMilliseconds: Int64 = 600_000
  /// From when on generations are rationed, 2026-01-01 00:00 UTC, in milliseconds since 1970.
  static let generationsSince: UInt64 = 1_767_225_600_000
  /// One more generation counts each so many milliseconds.
  static let generationMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// How early a batch may be to wait for its time, in milliseconds, and how many bytes of batches
  /// wait behind it.
  static let earlyMilliseconds: Int64 = 60_000
  static let earlyBytes = 16 << 20
  /// How often a full `Have` is sent, in milliseconds, less up to a quarter of jitter.
  static let haveIntervalMilliseconds: UInt64 = 30_000
  /// How long a session lasts before it is dialled anew, in milliseconds.
  static let sessionMilliseconds: UInt64 = 24 * 3_600_000
  /// Bytes of one message of records, which a stranger may be sent too (`Docs/Protocol.md`,
  /// "Handshake").
  static let recordsMessageBytes = 12 << 10
  /// The most bytes of a message of records: the largest record, and what is sent with it.
  static let recordsMessageLimitBytes = 32 << 10
  /// The least that a message of records counts of what may be brought, in bytes: what follows from
  /// the records is worked out for each.
  static let recordsMessageCost = 256
  /// Bytes of records that a session may bring at once: more than a full roster has as a rule.
  static let recordBurstBytes = 4 << 20
  /// What it may bring of them later on, in bytes for each millisecond.
  static let recordBytesPerMillisecond = 16
  /// The most bytes of what a peer says of its version.
  static let softwareBytes = 64
  /// Records in one message.
  static let recordsPerMessage = 1_024
  /// Bytes of records that are taken from a peer before it proves to be a member
  /// (`Docs/Protocol.md`, "Handshake").
  static let strangerBytes = MembershipLimits.strangerBytes
  /// The least wait, in milliseconds, before a member does what all members owe; up to four times as
  /// much is added at random.
  static let dutyWaitMilliseconds: UInt64 = 1_000
  /// The least wait for the secret of an epoch that others have, before an epoch of one's own is made.
  static let epochPatienceMilliseconds: UInt64 = 60_000
  /// Epochs that a device makes in an hour because a member sealed the last one to a revoked device,
  /// before it goes on under that one.
  static let epochsBecauseOfLeaks = 4
  /// The hour of ``epochsBecauseOfLeaks``.
  static let leakWindowMilliseconds: UInt64 = 3_600_000
  /// How long after its revocation a device may still shake hands to learn of it.
  static let revocationNewsMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// Addresses kept of one device.
  static let addressesPerDevice = 8
  /// So many of them, the first, are not displaced by hearsay.
  static let addressesBeforeHearsay = 4
  /// Trial openings of beacons in a second.
  static let beaconWorkPerSecond = 1_024
  /// As many trial openings as a signature's verification counts.
  static let beaconVerificationWork = 32
  /// Epochs that a beacon is tried with, the newest first.
  static let beaconEpochs = 8
  /// Devices whose beacons' counters are remembered.
  static let beaconDevices = 1_024
  /// Boots of one device that are remembered, those heard last.
  static let beaconBoots = 4
  /// Sources from which one beacon counts: a device sends it on each of its links, by IPv4 and IPv6.
  static let beaconSources = 4
  /// Sources of one boot that are remembered, to tell new ones.
  static let beaconKnownSources = 16
  /// The longest address, in bytes.
  static let addressBytes = 262
}

extension Policy {
  /// So many times what this policy lets a store show, with what each key takes beside its value.
  func room(factor: Int) -> Int { factor * (totalBytes + keys * Limits.overheadBytes) }
}
