public import KithCrypto

/// Names one stored change set. The digest distinguishes the two sides of a fork.
public struct ChangeSetReference: Hashable, Sendable {
  /// The author.
  public let device: DeviceID
  /// The author's database.
  public let incarnation: Incarnation
  /// The sequence: 1, 2, 3 …
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

/// A stored change set: the signed bytes, and the entries that still count.
public struct StoredChangeSet: Hashable, Sendable {
  /// The encoded header, as signed.
  public var header: [UInt8]
  /// The author's signature, 64 bytes.
  public var signature: [UInt8]
  /// Sealed entries by index, without superseded ones.
  public var entries: [UInt32: [UInt8]]

  /// Makes a stored change set.
  public init(header: [UInt8], signature: [UInt8], entries: [UInt32: [UInt8]] = [:]) {
    self.header = header
    self.signature = signature
    self.entries = entries
  }
}

/// The amount of damaged data that was dropped since the store was last whole.
public struct StoreLoss: Codable, Hashable, Sendable {
  /// Change sets with a dropped part.
  public var changeSets: Int
  /// Their dropped entries, as far as rows could be read.
  public var entries: Int
  /// Whether a person has accepted it, so that it is no longer reported. Data that another device
  /// gives back is accepted all the same.
  public var isAccepted: Bool

  /// Makes a loss.
  public init(changeSets: Int = 0, entries: Int = 0, isAccepted: Bool = false) {
    self.changeSets = changeSets
    self.entries = entries
    self.isAccepted = isAccepted
  }

  /// The amount, for people.
  public var text: String {
    changeSets == 0
      ? "it is not known how much"
      : "change sets damaged: \(changeSets), entries dropped: \(entries)"
  }
}

/// The persistent state of one store.
public struct StoredStore: Hashable, Sendable {
  /// Limits.
  public var policy: Policy
  /// The clock of the last adopted local write that may still be in the local stores.
  public var adopted = HybridTime.zero
  /// Whether a program on this host has opened it.
  public var isOpened = false
  /// The covered sequences, by device and incarnation.
  public var vector: [DeviceID: [Incarnation: UInt64]] = [:]
  /// The sequences that were covered when damage was found, of chains not covered so far again.
  public var lost: [DeviceID: [Incarnation: UInt64]] = [:]
  /// The lost amount; nil once all is covered again.
  public var loss: StoreLoss?
  /// Change sets by reference.
  public var changeSets: [ChangeSetReference: StoredChangeSet] = [:]
  /// Drafts by ordinal, as the core encodes them; the storage seals them.
  public var drafts: [UInt64: [UInt8]] = [:]
  /// Refusals not yet taken, by number, as the core encodes them; the storage seals them.
  public var refusals: [UInt64: [UInt8]] = [:]

  /// Makes an empty store.
  public init(policy: Policy) {
    self.policy = policy
  }
}

/// All persistent state of a replica.
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

/// The input of a new replica: all persistent state, change sets by name. They are read one by one,
/// so their boxes are never in memory all at once.
public struct StorageOutline: Sendable {
  /// All but change sets.
  public var snapshot: Snapshot
  /// Names of the kept change sets, by store, in any order.
  public var changeSets: [StoreIdentifier: [ChangeSetReference]]
  /// Damaged data, which is left out.
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

/// Damaged data: rows that differ from their checksum. `Mutation.dropDamaged` removes them.
public struct StorageDamage: Hashable, Sendable {
  /// How many rows.
  public var rows = 0
  /// Stores that may have lost change sets or entries, and how many.
  public var stores: [StoreIdentifier: StoreLoss] = [:]
  /// Whether the clock may be among them.
  public var mayLackClock = false

  /// No damage.
  public init() {}
}

/// One change of the persistent state. The core requests them in `Effect.persist`; storage applies
/// those of a commit together or not at all.
public enum Mutation: Hashable, Sendable {
  /// Remembers the hybrid logical clock.
  case setClock(HybridTime)
  /// Begins a new incarnation.
  case setIncarnation(Incarnation)
  /// Keeps a membership record.
  case putRecord(Digest256, [UInt8])
  /// Forgets a membership record without a place.
  case removeRecord(Digest256)
  /// Replaces the addresses of a device.
  case setAddresses(DeviceID, [String])
  /// Begins a store, or changes its policy.
  case putStore(StoreIdentifier, Policy)
  /// Stores up to which local write a store's were adopted.
  case setAdopted(StoreIdentifier, HybridTime)
  /// Stores that a program on this host has opened a store.
  case setOpened(StoreIdentifier)
  /// Keeps a change set's header and signature; its entries are mutations of their own.
  case putHeader(StoreIdentifier, ChangeSetReference, header: [UInt8], signature: [UInt8])
  /// Forgets a change set with all its entries.
  case removeChangeSet(StoreIdentifier, ChangeSetReference)
  /// Keeps one sealed entry of a change set.
  case putEntry(StoreIdentifier, ChangeSetReference, index: UInt32, box: [UInt8])
  /// Forgets one sealed entry; the header stays.
  case removeEntry(StoreIdentifier, ChangeSetReference, index: UInt32)
  /// Covers an incarnation's change sets up to a sequence.
  case setVector(StoreIdentifier, DeviceID, Incarnation, UInt64)
  /// Forgets an incarnation's coverage.
  case removeVector(StoreIdentifier, DeviceID, Incarnation)
  /// Stores how far an incarnation was covered when damage was found.
  case setLost(StoreIdentifier, DeviceID, Incarnation, UInt64)
  /// Forgets that, once it is covered so far again.
  case removeLost(StoreIdentifier, DeviceID, Incarnation)
  /// Stores how much of a store was lost; nil: nothing.
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

/// The place of a replica's memory: SQLite in production, memory in tests and the simulator. All
/// pass the same conformance tests.
public protocol ReplicaStorage: AnyObject, Sendable {
  /// Whether the stored data was copied or restored, and has no new incarnation yet
  /// (`Docs/Protocol.md`, "Entries and change sets").
  var isCopy: Bool { get }

  /// Loads all that was committed, change sets by name. Compares everything with its checksum.
  ///
  /// - Throws: `damaged` if there is no replica without a damaged part.
  func outline() throws(StorageError) -> StorageOutline

  /// Reads change sets in the order of their names; nil for one that is not kept.
  ///
  /// - Throws: `damaged` if one differs from its checksum.
  func changeSets(
    _ references: [ChangeSetReference], in store: StoreIdentifier
  ) throws(StorageError) -> [StoredChangeSet?]

  /// Applies mutations in order, durably, all or none.
  func commit(_ mutations: [Mutation]) throws(StorageError)
}

extension ReplicaStorage {
  /// Reads a change set; nil if it is not kept.
  ///
  /// - Throws: `damaged` if it differs from its checksum.
  public func changeSet(
    _ reference: ChangeSetReference, in store: StoreIdentifier
  ) throws(StorageError) -> StoredChangeSet? {
    try changeSets([reference], in: store)[0]
  }

  /// Reads all that was committed, with all boxes in memory.
  ///
  /// - Complexity: O(*n*) in the stored bytes.
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

/// The error of the storage, with its path and the remedy.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error. A struct, so that a new code breaks no program.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed and logged.
    public let description: String

    /// The device is full.
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
    /// Modes or owner expose the secrets.
    public static let unsafePermissions = Self(description: "unsafePermissions")
    /// A passphrase is needed or wrong.
    public static let passphrase = Self(description: "passphrase")
    /// Another error of the operating system or SQLite.
    public static let inputOutput = Self(description: "inputOutput")
  }

  /// The kind of error.
  public let code: Code
  /// The file or directory concerned.
  public let path: String
  /// The problem and its remedy.
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

  /// The message after the path.
  public var description: String { "\(path): \(message)" }
}
