public import KithCrypto

/// Names one stored change set. The digest tells the two sides of a fork apart.
public struct ChangeSetReference: Hashable, Sendable {
  /// The author.
  public let device: DeviceID
  /// The author's database.
  public let incarnation: Incarnation
  /// The author's count: 1, 2, 3 …
  public let sequence: UInt64
  /// The BLAKE2b-256 of the header's bytes.
  public let digest: Digest256

  /// Makes a reference.
  public init(device: DeviceID, incarnation: Incarnation, sequence: UInt64, digest: Digest256) {
    self.device = device
    self.incarnation = incarnation
    self.sequence = sequence
    self.digest = digest
  }
}

/// A change set as it is kept: what was signed, byte for byte, and the entries that still count.
public struct StoredChangeSet: Hashable, Sendable {
  /// The encoded header, as signed.
  public var header: [UInt8]
  /// The author's signature, 64 bytes.
  public var signature: [UInt8]
  /// Sealed entries by index; superseded ones are gone.
  public var entries: [UInt32: [UInt8]]

  /// Makes a stored change set.
  public init(header: [UInt8], signature: [UInt8], entries: [UInt32: [UInt8]] = [:]) {
    self.header = header
    self.signature = signature
    self.entries = entries
  }
}

/// How much of a store was damaged on the disk and dropped, since the store was whole last.
public struct StoreLoss: Hashable, Sendable {
  /// Change sets of which something was dropped.
  public var changeSets: Int
  /// Their entries that were dropped, as far as their rows could be told.
  public var entries: Int
  /// Whether a person has accepted it: it is not said any more. What another device gives back later is
  /// taken all the same.
  public var isAccepted: Bool

  /// Makes a loss.
  public init(changeSets: Int = 0, entries: Int = 0, isAccepted: Bool = false) {
    self.changeSets = changeSets
    self.entries = entries
    self.isAccepted = isAccepted
  }

  /// How much it is, for people.
  public var text: String {
    changeSets == 0
      ? "it is not known how much"
      : "change sets damaged: \(changeSets), entries dropped: \(entries)"
  }
}

/// What is remembered of one store from run to run.
public struct StoredStore: Hashable, Sendable {
  /// Limits.
  public var policy: Policy
  /// The clock of the last local write that was adopted and may still be in the local stores.
  public var adopted = HybridTime.zero
  /// Whether a program on this host has opened it.
  public var isOpened = false
  /// What is covered, by device and incarnation.
  public var vector: [DeviceID: [Incarnation: UInt64]] = [:]
  /// What was covered when damage was found, of chains that are not covered so far again.
  public var lost: [DeviceID: [Incarnation: UInt64]] = [:]
  /// How much was lost then; nil once all of it is covered again.
  public var loss: StoreLoss?
  /// Change sets by reference.
  public var changeSets: [ChangeSetReference: StoredChangeSet] = [:]
  /// Drafts by ordinal, as the core encodes them. Sealed by the storage.
  public var drafts: [UInt64: [UInt8]] = [:]
  /// Refusals not yet taken, by number, as the core encodes them. Sealed by the storage.
  public var refusals: [UInt64: [UInt8]] = [:]

  /// Makes a store with nothing in it.
  public init(policy: Policy) {
    self.policy = policy
  }
}

/// Everything that a replica remembers from run to run.
public struct Snapshot: Hashable, Sendable {
  /// The hybrid logical clock.
  public var clock: HybridTime = .zero
  /// This database's incarnation; nil before the first start.
  public var incarnation: Incarnation?
  /// Membership records, encoded, by the digest of their body.
  public var records: [Digest256: [UInt8]] = [:]
  /// Addresses at which devices were met.
  public var addresses: [DeviceID: [String]] = [:]
  /// Stores by identifier.
  public var stores: [StoreIdentifier: StoredStore] = [:]

  /// Makes an empty snapshot.
  public init() {}
}

/// What a replica begins from: everything that is remembered, change sets by name only. They are
/// read one by one, so that their boxes are never in memory all at once.
public struct StorageOutline: Sendable {
  /// All but change sets.
  public var snapshot: Snapshot
  /// Names of the change sets that are kept, by store, in any order.
  public var changeSets: [StoreIdentifier: [ChangeSetReference]]
  /// What does not hold any more, and is left out.
  public var damage: StorageDamage

  /// Makes an outline.
  public init(
    snapshot: Snapshot, changeSets: [StoreIdentifier: [ChangeSetReference]],
    damage: StorageDamage = StorageDamage()
  ) {
    self.snapshot = snapshot
    self.changeSets = changeSets
    self.damage = damage
  }

  /// The outline of a snapshot.
  public init(_ snapshot: Snapshot, damage: StorageDamage = StorageDamage()) {
    var outline = snapshot
    for identifier in snapshot.stores.keys { outline.stores[identifier]?.changeSets = [:] }
    self.init(
      snapshot: outline, changeSets: snapshot.stores.mapValues { Array($0.changeSets.keys) },
      damage: damage)
  }
}

/// What storage found damaged: rows that differ from their checksum. `Mutation.dropDamaged` removes
/// them.
public struct StorageDamage: Hashable, Sendable {
  /// How many rows.
  public var rows = 0
  /// Stores of which change sets or entries may be among them, and how many.
  public var stores: [StoreIdentifier: StoreLoss] = [:]
  /// Whether the hybrid logical clock may be among them.
  public var mayLackClock = false

  /// No damage.
  public init() {}
}

/// One change to what is remembered. The core asks for them in `Effect.persist`; storage applies
/// those of one commit together or not at all.
public enum Mutation: Hashable, Sendable {
  /// Remembers the hybrid logical clock.
  case setClock(HybridTime)
  /// Begins a new incarnation.
  case setIncarnation(Incarnation)
  /// Keeps a membership record.
  case putRecord(Digest256, [UInt8])
  /// Forgets a membership record for which there is no room.
  case removeRecord(Digest256)
  /// Replaces the addresses of a device.
  case setAddresses(DeviceID, [String])
  /// Begins a store, or changes its policy.
  case putStore(StoreIdentifier, Policy)
  /// Remembers up to which local write a store's were adopted.
  case setAdopted(StoreIdentifier, HybridTime)
  /// Remembers that a program on this host has opened a store.
  case setOpened(StoreIdentifier)
  /// Keeps a change set's header and signature; its entries come as mutations of their own.
  case putHeader(StoreIdentifier, ChangeSetReference, header: [UInt8], signature: [UInt8])
  /// Forgets a change set with all its entries.
  case removeChangeSet(StoreIdentifier, ChangeSetReference)
  /// Keeps one sealed entry of a change set.
  case putEntry(StoreIdentifier, ChangeSetReference, index: UInt32, box: [UInt8])
  /// Forgets one sealed entry; the header stays.
  case removeEntry(StoreIdentifier, ChangeSetReference, index: UInt32)
  /// Covers change sets of one incarnation up to a sequence.
  case setVector(StoreIdentifier, DeviceID, Incarnation, UInt64)
  /// Forgets what was covered of one incarnation.
  case removeVector(StoreIdentifier, DeviceID, Incarnation)
  /// Remembers how far an incarnation was covered when damage was found.
  case setLost(StoreIdentifier, DeviceID, Incarnation, UInt64)
  /// Forgets that: it is covered so far again.
  case removeLost(StoreIdentifier, DeviceID, Incarnation)
  /// Remembers how much of a store was lost; nil: nothing any more.
  case setLoss(StoreIdentifier, StoreLoss?)
  /// Removes the rows that the last outline left out as damaged.
  case dropDamaged
  /// Keeps a draft under its ordinal.
  case putDraft(StoreIdentifier, UInt64, [UInt8])
  /// Forgets a draft.
  case removeDraft(StoreIdentifier, UInt64)
  /// Keeps a refusal under its number.
  case putRefusal(StoreIdentifier, UInt64, [UInt8])
  /// Forgets a refusal that the program has taken.
  case removeRefusal(StoreIdentifier, UInt64)
}

/// Where a replica's memory lives: SQLite in production, memory in tests and the simulator. Every
/// implementation passes the same conformance tests.
public protocol ReplicaStorage: AnyObject, Sendable {
  /// Whether what is stored was copied or restored from elsewhere, and `setIncarnation` has not
  /// been committed since (`Docs/Protocol.md`, "Entries and change sets").
  var isCopy: Bool { get }

  /// All that was committed, change sets by name only. Compares everything with its checksum.
  ///
  /// - Throws: `damaged` where something does not hold without which there is no replica.
  func outline() throws(StorageError) -> StorageOutline

  /// Change sets as they were committed, in the order of their names; nil in the place of one that is
  /// not kept.
  ///
  /// - Throws: `damaged` where one differs from its checksum.
  func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?]

  /// Applies mutations in order, durably, together or not at all.
  func commit(_ mutations: [Mutation]) throws(StorageError)
}

extension ReplicaStorage {
  /// A change set as it was committed; nil where it is not kept.
  ///
  /// - Throws: `damaged` where it differs from its checksum.
  public func changeSet(
    _ reference: ChangeSetReference, in store: StoreIdentifier
  ) throws(StorageError) -> StoredChangeSet? {
    try changeSets([reference], in: store)[0]
  }

  /// All that was committed, with all boxes in memory.
  ///
  /// - Complexity: O(*n*) in the bytes stored.
  public func load() throws(StorageError) -> Snapshot {
    let outline = try outline()
    var snapshot = outline.snapshot
    for (store, references) in outline.changeSets {
      for (reference, changeSet) in zip(references, try changeSets(references, in: store)) {
        snapshot.stores[store]?.changeSets[reference] = changeSet
      }
    }
    return snapshot
  }
}

/// Why storage refused, with the path it is about and what to do.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What went wrong. A struct, so that a new code breaks nobody.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed and logged.
    public let description: String

    /// No room left on the device.
    public static let diskFull = Self(description: "diskFull")
    /// The file system or directory cannot be written.
    public static let readOnly = Self(description: "readOnly")
    /// The file is damaged; it is never recreated silently.
    public static let damaged = Self(description: "damaged")
    /// The file was written by a newer version.
    public static let newerSchema = Self(description: "newerSchema")
    /// Another node owns the directory.
    public static let inUse = Self(description: "inUse")
    /// The directory holds no device.
    public static let missing = Self(description: "missing")
    /// The directory already holds a device.
    public static let alreadyExists = Self(description: "alreadyExists")
    /// Modes or owner let others read secrets.
    public static let unsafePermissions = Self(description: "unsafePermissions")
    /// A passphrase is needed, or the one given is wrong.
    public static let passphrase = Self(description: "passphrase")
    /// Anything else that the operating system or SQLite reports.
    public static let inputOutput = Self(description: "inputOutput")
  }

  /// What went wrong.
  public let code: Code
  /// The file or directory concerned.
  public let path: String
  /// What happened and what to do.
  public let message: String
  /// The process that owns the directory, with ``Code/inUse``.
  public let owner: Int32?

  /// Makes an error.
  public init(code: Code, path: String, message: String, owner: Int32? = nil) {
    self.code = code
    self.path = path
    self.message = message
    self.owner = owner
  }

  /// The message behind the path.
  public var description: String { "\(path): \(message)" }
}
