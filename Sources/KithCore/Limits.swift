/// The limits of the core. Everything that grows with the data that peers send has one here.
package enum Limits {
  /// The highest sequence that a double counts exactly.
  static let sequence: UInt64 = 1 << 53
  /// Entries in one change set.
  static let entriesPerChangeSet = 8_192
  /// Plaintext bytes after which publishing starts another change set.
  static let changeSetBytes = 1 << 20
  /// Bytes of a change set's header and boxes. An entry with the largest value and fallback is far
  /// smaller; with all covers of a store it fits into a message.
  static let changeSetBoxBytes = 6 << 20
  /// More bytes than a cover ever takes in a message.
  static let coverBytes = 64
  /// Bytes of change sets after which a batch continues in another message.
  static let batchPartBytes = 1 << 20
  /// Bytes of one batch that a session may have under way.
  static let batchBytes = 128 << 20
  /// Bytes of change sets after which the rest of an answer waits for room.
  static let pieceBytes = 8 << 20
  /// Bytes of batches on a session above which none starts before the network has room.
  static let bytesUnderWay = 8 << 20
  /// Change sets in one message; each takes memory before it is checked.
  static let changeSetsPerMessage = 8_192
  /// Sealed entries in one message, over all change sets; also entries of its vectors, addresses,
  /// and digests of one header.
  static let elementsPerMessage = 65_536
  /// The largest message, in bytes; the network refuses larger ones.
  package static let messageBytes = 8 << 20
  /// Bytes of vectors after which a `Have` continues in another message. One store's vectors take
  /// less.
  static let haveMessageBytes = 1 << 20
  /// Stores of an account.
  static let stores = 256
  /// Incarnations that one device may use.
  static let incarnations = 16
  /// Chains of one device in a store: more than it may use, since copies of a directory that never
  /// met count their own.
  static let chainsPerDevice = 64
  /// Chains (devices times incarnations) of a store.
  static let chainsPerStore = 4_096
  /// Chains of the pieces of an answer that may not be counted. With more, none of the answer counts.
  static let taintedChains = 256
  /// Remembered entries of one peer's vectors, over all stores; beyond, only of known chains.
  static let vectorEntriesPerSession = 65_536
  /// Drafts of a store kept one by one; beyond, later ones that write all its keys replace a draft,
  /// even if they might be refused.
  static let drafts = 4_096
  /// The factor of the policy's bytes for a store's drafts, and for refusals not taken.
  static let draftFactor = 8
  /// Removed entries of a store (`Docs/Protocol.md`, "Sessions").
  static let removals = 4_096
  /// Quarantined entries of a store that are kept to be relayed.
  static let quarantined = 256
  /// The factor of the policy's bytes for one author in a store (`Docs/Protocol.md`, "Sessions").
  static let authorFactor = 8
  /// Bytes of one author, over all stores.
  static let authorBytes = 56 << 20
  /// So many of them in stores that no program on this host has opened.
  static let unopenedAuthorBytes = 16 << 20
  /// Bytes of all other authors together.
  static let authorsBytes = 64 << 20
  /// An author's share even if others have used all.
  static let authorFloorBytes = 256 << 10
  /// Bytes of change sets that arrived or were published at once and are relayed from memory; more
  /// are read from storage.
  static let heldBatchBytes = 1 << 20
  /// The weight of a change set or entry besides its bytes, so that empty ones are bounded too.
  static let overheadBytes = 256
  /// Kept statements, the newest of each device and store.
  static let statements = 16_384
  /// Statements in one message.
  static let statementsPerMessage = 1_024
  /// How often in a session all records are sent again to a peer that cannot judge something.
  static let recordsSentAgain = 3
  /// The maximum number of bytes of the extent that statements share.
  static let statementBytes = 1_024
  /// The maximum number of vector entries that statements name.
  static let statementEntries = 8
  /// The time in which changes of the statements held are told together, in milliseconds, less up to
  /// a half of jitter.
  static let statementWaitMilliseconds: UInt64 = 200
  /// The time from an answer until the statements about a store are asked for again, in milliseconds.
  static let statementRestMilliseconds: UInt64 = 100
  /// The time after which another peer is asked if one does not answer, in milliseconds.
  static let statementAnswerMilliseconds: UInt64 = 2_000
  /// The time between a device's statements of a store, in milliseconds for each member.
  static let statementPaceMilliseconds: UInt64 = 20
  /// How long a member may lack unchanged data before the network is told to dial it, in
  /// milliseconds.
  static let leftBehindMilliseconds: UInt64 = 60_000
  /// The last wall time that is stamped, in milliseconds since 1970: the end of 2199.
  static let lastWallMilliseconds: UInt64 = 7_258_118_400_000
  /// The tolerated difference of clocks, in milliseconds (`Docs/Protocol.md`, "Clocks").
  package static let clockDifferenceMilliseconds: Int64 = 60_000
  /// How far from its own time a device follows another's, in milliseconds, unless its own clock is
  /// worthless.
  static let followedMilliseconds: UInt64 = 24 * 3_600_000
  /// How long another device's time counts, in milliseconds.
  static let claimMilliseconds: UInt64 = 3_600_000
  /// How long an earlier time in a session does not replace a later one, in milliseconds: messages
  /// may be late.
  static let latestClaimMilliseconds: UInt64 = 300_000
  /// The lead over a certain time at which a hybrid clock heals, in milliseconds: smaller leads
  /// pass by themselves.
  package static let healingMilliseconds: Int64 = 600_000
  /// The start of the ration of generations, 2026-01-01 00:00 UTC, in milliseconds since 1970.
  static let generationsSince: UInt64 = 1_767_225_600_000
  /// The time for one more generation, in milliseconds.
  static let generationMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// How early a batch may be to wait for its time, in milliseconds.
  static let earlyMilliseconds: Int64 = 60_000
  /// The time between full `Have`s, in milliseconds, less up to a quarter of jitter.
  static let haveIntervalMilliseconds: UInt64 = 30_000
  /// The age at which a session is dialled anew, in milliseconds.
  static let sessionMilliseconds: UInt64 = 24 * 3_600_000
  /// Bytes of one message of records, also to a stranger (`Docs/Protocol.md`, "Handshake").
  static let recordsMessageBytes = 12 << 10
  /// The maximum of a message of records: the largest record, and the data sent with it.
  static let recordsMessageLimitBytes = 32 << 10
  /// The least weight of a message of records, in bytes, because each is evaluated.
  static let recordsMessageCost = 256
  /// Bytes of records that a session may bring at once: more than a usual full roster.
  static let recordBurstBytes = 4 << 20
  /// Bytes of records that it may bring later, for each millisecond.
  static let recordBytesPerMillisecond = 16
  /// The maximum of a peer's version text.
  static let softwareBytes = 64
  /// Records in one message.
  static let recordsPerMessage = 1_024
  /// Bytes of records accepted from a peer before it proves to be a member (`Docs/Protocol.md`,
  /// "Handshake").
  static let strangerBytes = MembershipLimits.strangerBytes
  /// The least wait, in milliseconds, before a member's duties; up to four times as much is added
  /// at random.
  static let dutyWaitMilliseconds: UInt64 = 1_000
  /// The least wait for the secret of another's epoch before making one.
  static let epochPatienceMilliseconds: UInt64 = 60_000
  /// Epochs that a device makes in an hour because a member sealed the last one to a revoked
  /// device, before it continues under that one.
  static let epochsBecauseOfLeaks = 4
  /// The hour of ``epochsBecauseOfLeaks``.
  static let leakWindowMilliseconds: UInt64 = 3_600_000
  /// How long a revoked device may still shake hands to learn of its revocation.
  static let revocationNewsMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// Kept addresses of one device.
  static let addressesPerDevice = 8
  /// So many of them, the first, are not displaced by those that others tell.
  static let addressesBeforeHearsay = 4
  /// Trial openings of beacons in a second.
  static let beaconWorkPerSecond = 1_024
  /// The weight of a signature's verification, in trial openings.
  static let beaconVerificationWork = 32
  /// Epochs tried for a beacon, the newest first.
  static let beaconEpochs = 8
  /// Devices whose beacons' counters are remembered.
  static let beaconDevices = 1_024
  /// Remembered boots of one device, those heard last.
  static let beaconBoots = 4
  /// Sources from which one beacon counts: a device sends it on each link, by IPv4 and IPv6.
  static let beaconSources = 4
  /// Remembered sources of one boot.
  static let beaconKnownSources = 16
  /// The maximum number of bytes that addresses take in an inviter's reply: with its records, the
  /// reply fits into a message of a pairing.
  static let joinAddressBytes = 12 << 10
  /// The longest address, in bytes.
  static let addressBytes = 262
}

extension Policy {
  /// The factor of the largest state under this policy, with each key's weight.
  func room(factor: Int) -> Int { factor * (totalBytes + keys * Limits.overheadBytes) }
}
