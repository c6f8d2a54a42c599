/// The limits of the core: everything that grows with data from peers has one here.
package enum Limits {
  /// The highest sequence that a double counts exactly.
  static let sequence: UInt64 = 1 << 53
  static let entriesPerChangeSet = 8_192
  /// Plaintext bytes after which publishing starts another change set, which so fits into an object
  /// on a carrier.
  static let changeSetBytes = 1 << 19
  /// Header and boxes: far more than the largest entry takes, and within a message with all covers
  /// of a store.
  static let changeSetBoxBytes = 6 << 20
  /// Above the bytes of any cover in a message.
  static let coverBytes = 64
  /// Bytes of change sets after which a batch continues in another message. A smaller one costs more
  /// messages; with a larger one the peer begins to check signatures later.
  static let batchPartBytes = 1 << 18
  /// Bytes of one received batch.
  static let batchBytes = 128 << 20
  /// Bytes of change sets after which the rest of an answer waits until the network is drained.
  static let pieceBytes = 8 << 20
  /// Bytes in flight at which a session waits until the network is drained.
  static let bytesUnderWay = 8 << 20
  /// Each takes memory before it is checked.
  static let changeSetsPerMessage = 8_192
  /// Sealed entries; also vector entries, addresses, and digests of one header.
  static let elementsPerMessage = 65_536
  /// The largest message that the network accepts.
  package static let messageBytes = 8 << 20
  /// Bytes after which a `Have` continues in another message; one store's vectors fit.
  static let haveMessageBytes = 1 << 20
  package static let stores = 256
  /// Incarnations that one device may use.
  static let incarnations = 16
  /// Used incarnations with which a device still sends change sets early: each end of the host may
  /// cost one.
  static let earlyIncarnations = 8
  /// How far ahead of the host's clock the publishing clock of a change set sent early may be.
  package static let earlyMilliseconds: UInt64 = 2_000
  /// Chains of one device in a store: above ``incarnations``, because copies of a directory that
  /// never met count their own.
  static let chainsPerDevice = 64
  /// Devices times incarnations.
  static let chainsPerStore = 4_096
  /// Above this, a whole answer in pieces is not counted.
  static let taintedChains = 256
  /// Remembered vector entries of a peer, over all stores; above, only those of known chains.
  static let vectorEntriesPerSession = 65_536
  /// Bounds the drafts that remove keys which no device has, in multiples of the policy's keys, so
  /// that they fit into what other devices keep of an author once they are published.
  static let draftRemovalFactor = 4
  /// Bounds the bytes of a store's refusals, in multiples of its policy, besides its keys: the values
  /// of a full store fit, also if each was written alone under a longest key.
  static let refusalFactor = 3
  /// How long a past value is kept.
  static let historyMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// Above this, a key's oldest past value is dropped, so that a key that changes every second
  /// leaves those of others.
  static let pastValuesPerKey = 100
  /// Bounds the bytes of a store's history, in multiples of its policy, besides its keys: it fits a
  /// change of every shown value, and takes no more memory than those.
  static let historyFactor = 1
  /// Per store (`Docs/Protocol.md`, "Merging").
  static let removals = 4_096
  /// Quarantined entries of a store that are kept.
  static let quarantined = 256
  /// Bounds an author's bytes in a store, in multiples of its policy (`Docs/Protocol/bounds.md`,
  /// "Authors").
  static let authorFactor = 8
  /// Bytes of one author, over all stores.
  package static let authorBytes = 56 << 20
  /// The part of ``authorBytes`` for stores that no program on this host has opened.
  package static let unopenedAuthorBytes = 16 << 20
  /// Bytes of all other authors together.
  static let authorsBytes = 64 << 20
  /// Bytes that an author may use even if others have used all.
  static let authorFloorBytes = 256 << 10
  /// Bytes of a batch relayed from memory; a larger one is read from storage.
  static let readyBatchBytes = 1 << 20
  /// Counted for each change set or entry besides its bytes, so that empty ones are bounded.
  static let overheadBytes = 256
  static let wordsPerMessage = 1_024
  /// How often a session sends all records again to a peer that cannot judge something.
  static let recordsSentAgain = 3
  /// Bytes of a word's content.
  static let wordBytes = 80 << 10
  /// Vector entries of a word's content, in all stores.
  static let wordEntries = 8
  /// The wait before words are made and passed on together, less up to a half of jitter; also the
  /// least time between a device's words.
  static let wordWaitMilliseconds: UInt64 = 200
  /// The least time between a device's words, for each member.
  static let wordPaceMilliseconds: UInt64 = 20
  /// No word is under way on a session that carried none for so long.
  static let wordQuietMilliseconds: UInt64 = 1_000
  /// How long a member may lack unchanged data before it is left behind.
  static let leftBehindMilliseconds: UInt64 = 60_000
  /// The last wall time that is stamped: the end of 2199, in milliseconds since 1970.
  static let lastWallMilliseconds: UInt64 = 7_258_118_400_000
  /// More readings than a flush takes.
  static let readingsOfFlush = 1_024
  /// The tolerated difference of clocks (`Docs/Protocol.md`, "Clocks").
  package static let clockDifferenceMilliseconds: Int64 = 60_000
  /// The distance up to which a device follows another's time, unless its own clock is worthless.
  static let followedMilliseconds: UInt64 = 24 * 3_600_000
  /// How long a member's time counts.
  static let memberTimeMilliseconds: UInt64 = 3_600_000
  /// How long an earlier time does not replace a later one in a session: messages may be late.
  static let latestMemberTimeMilliseconds: UInt64 = 300_000
  /// The lead above which a hybrid clock heals; smaller leads pass by themselves.
  package static let healingMilliseconds: Int64 = 600_000
  /// The date from which the limit of generations grows: 2026-01-01 00:00 UTC, in milliseconds
  /// since 1970.
  static let generationsSince: UInt64 = 1_767_225_600_000
  /// The time that raises the limit of generations by one.
  static let generationMilliseconds: UInt64 = 30 * 24 * 3_600_000
  /// The lead over the time that a publishing clock may have: its author's clock may be ahead of the
  /// clock of the device that passes it on, and that one ahead of the receiver's.
  static let publishedAheadMilliseconds: Int64 = 2 * clockDifferenceMilliseconds
  /// The time between full `Have`s, less up to a quarter of jitter.
  static let haveIntervalMilliseconds: UInt64 = 30_000
  /// The age at which a session is replaced by a new one.
  static let sessionMilliseconds: UInt64 = 24 * 3_600_000
  /// Bytes sent in one message, also to a stranger (`Docs/Protocol.md`, "Order of messages").
  static let recordsMessageBytes = 12 << 10
  /// Bytes received in one message: the largest record, and the data sent with it.
  static let recordsMessageLimitBytes = 32 << 10
  /// The least bytes counted for a message, because each is evaluated.
  static let recordsMessageCost = 256
  /// Bytes of records that a session may bring at once: a roster with all places taken, if no device
  /// lies.
  static let recordBurstBytes = 5 << 20
  /// The time in which ``recordBurstBytes`` come back: 16 in a millisecond.
  static let recordBurstMilliseconds = 327_680
  /// How often a transaction is tried if others change what it read.
  package static let commitTries = 1_000
  /// Bytes of a peer's version text.
  static let softwareBytes = 64
  static let recordsPerMessage = 1_024
  /// Bytes of records accepted before a peer proves to be a member (`Docs/Protocol/listening.md`,
  /// "Unknown peers").
  static let strangerBytes = MembershipLimits.strangerBytes
  /// The least wait before a member's duties; up to four times as much is added at random.
  static let dutyWaitMilliseconds: UInt64 = 1_000
  /// The least wait for the secret of another's epoch before making one.
  static let epochPatienceMilliseconds: UInt64 = 60_000
  /// Epochs made because a member sealed the last one to a revoked device; without any left, the
  /// device continues under that one.
  static let epochsBecauseOfLeaks = 4
  /// The time in which ``epochsBecauseOfLeaks`` come back.
  static let leakMilliseconds = 3_600_000
  /// How long a revoked device may still shake hands to learn of its revocation.
  static let revocationNewsMilliseconds: UInt64 = 30 * 24 * 3_600_000
  static let addressesPerDevice = 8
  /// The least time between two times at which changed addresses are stored, dialled and sent.
  static let addressesMilliseconds: UInt64 = 1_000
  /// The first addresses, which addresses from third devices do not displace.
  static let addressesBeforeRelayed = 4
  /// In trial openings.
  static let beaconWorkPerSecond = 1_024
  /// The weight of a signature's verification, in trial openings.
  static let beaconVerificationWork = 32
  /// Epochs tried for a beacon, the newest first.
  static let beaconEpochs = 8
  /// Devices whose beacon counters are remembered.
  static let beaconDevices = 1_024
  /// Remembered boots of one device, those seen last.
  static let beaconBoots = 4
  /// Sources that count for one beacon: a device sends it on each link.
  static let beaconSources = 4
  /// Remembered sources of one boot.
  static let beaconKnownSources = 16
  /// Bytes of addresses in an inviter's reply, so that it fits into one message with its records.
  static let joinAddressBytes = 12 << 10
  static let addressBytes = 262
  /// Carriers of a device.
  package static let carriers = 4
  /// Objects of an account's place; a longer listing counts for nothing.
  package static let objects = 16_384
  /// Objects got in a turn, and their bytes; the rest follows in the next.
  static let objectsPerTurn = 1_024
  static let objectBytesPerTurn = 64 << 20
  /// Objects got in a turn that did not open before: a revoked device can make them.
  static let doubtfulObjectsPerTurn = 16
  /// Bytes of the largest object that is got.
  package static let objectBytes = 16 << 20
  /// Objects are padded to at least this size.
  static let smallestObjectBytes = 4 << 10
  /// Bytes of change sets after which an object continues in another one. Padded and with its
  /// vectors it stays below 1,000,000 bytes: nginx refuses more than 1 MiB by default.
  static let objectContentBytes = 900_000
  /// The highest level.
  static let objectLevels = 24
  /// Pieces of an object.
  static let objectPieces = 1_024
  static let objectMessages = 4_096
  /// Boxes in an object: for the first device, each certified one, and the recovery key.
  static let objectBoxes = MembershipLimits.certificates + 2
  /// Bytes of objects that were read and wait in memory.
  static let waitingObjectBytes = 16 << 20
  /// Bytes of the bodies that are noted of a carrier's objects.
  static let objectBodyBytes = 32 << 20
  /// Pending parts of a store, when it is computed what objects bring: those above a vector that no
  /// object brings yet.
  static let pendingParts = 1_024
  /// How old a listing may be.
  static let carrierHourMilliseconds: UInt64 = 3_600_000
  /// How long another device may take to put an object after its pieces.
  static let carrierDayMilliseconds: UInt64 = 86_400_000
  /// The wait after a local write; it doubles up to the longest while writes go on.
  static let carrierWriteMilliseconds: UInt64 = 2_000
  static let carrierLongestWriteMilliseconds: UInt64 = 60_000
  /// The least wait after change sets from a session; up to twice as much is added at random.
  static let carrierSessionNewsMilliseconds: UInt64 = 30_000
  /// The longest wait while nothing changes.
  static let carrierLongestMilliseconds: UInt64 = 300_000
  /// The longest wait after failures.
  static let carrierBackOffMilliseconds: UInt64 = 900_000
  /// How long a device that is not certain of its time waits before it publishes for a carrier.
  static let carrierUncertainMilliseconds: UInt64 = 600_000
  /// The least time, for each member, between objects that bring only words.
  static let carrierWordMilliseconds: UInt64 = 120_000
}

extension Policy {
  /// A multiple of the largest state under this policy, with each key's weight.
  func capacity(factor: Int) -> Int { factor * (totalBytes + keys * Limits.overheadBytes) }

  /// As ``capacity(factor:)``, and the bytes of so many keys.
  func capacityWithKeys(factor: Int) -> Int { capacity(factor: factor) + keys * keyBytes }
}
