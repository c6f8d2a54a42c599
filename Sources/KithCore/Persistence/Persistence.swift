package import KithCrypto

/// Names one stored change set. The digest distinguishes the two sides of a fork.
package struct ChangeSetReference: Hashable, Sendable {
  /// The author.
  package let device: DeviceID
  /// The author's database.
  package let incarnation: Incarnation
  /// The sequence: 1, 2, 3 …
  package let sequence: UInt64
  /// The BLAKE2b-256 of the header's bytes.
  package let digest: Digest256

  /// Makes a reference.
  package init(device: DeviceID, incarnation: Incarnation, sequence: UInt64, digest: Digest256) {
    self.device = device
    self.incarnation = incarnation
    self.sequence = sequence
    self.digest = digest
  }
}

/// A stored change set: the signed bytes, and the entries that still count.
package struct StoredChangeSet: Hashable, Sendable {
  /// The encoded header, as signed.
  package var header: [UInt8]
  /// The author's signature, 64 bytes.
  package var signature: [UInt8]
  /// Sealed entries by index, without superseded ones.
  package var entries: [UInt32: [UInt8]]

  /// Makes a stored change set.
  package init(header: [UInt8], signature: [UInt8], entries: [UInt32: [UInt8]] = [:]) {
    self.header = header
    self.signature = signature
    self.entries = entries
  }
}

/// The persistent state of one store.
package struct StoredStore: Hashable, Sendable {
  /// Limits.
  package var policy: Policy
  /// The clock of the last adopted local write that may still be in the local stores.
  package var adopted = HybridTime.zero
  /// Whether a program on this host has opened it.
  package var isOpened = false
  /// The covered sequences, by device and incarnation.
  package var vector: [DeviceID: [Incarnation: UInt64]] = [:]
  /// The sequences that were covered when damage was found, of chains not covered so far again.
  package var lost: [DeviceID: [Incarnation: UInt64]] = [:]
  /// The lost amount; nil once all is covered again.
  package var loss: StoreLoss?
  /// Change sets by reference.
  package var changeSets: [ChangeSetReference: StoredChangeSet] = [:]
  /// Drafts by ordinal, as the core encodes them; the storage seals them.
  package var drafts: [UInt64: [UInt8]] = [:]
  /// Refusals not yet taken, by number, as the core encodes them; the storage seals them.
  package var refusals: [UInt64: [UInt8]] = [:]

  /// Makes an empty store.
  package init(policy: Policy) {
    self.policy = policy
  }
}

/// All persistent state of a replica.
package struct Snapshot: Hashable, Sendable {
  /// The hybrid logical clock.
  package var clock: HybridTime = .zero
  /// This database's incarnation; nil before the first start.
  package var incarnation: Incarnation?
  /// Membership records, encoded, by the digest of their body.
  package var records: [Digest256: [UInt8]] = [:]
  /// Addresses at which devices were met.
  package var addresses: [DeviceID: [String]] = [:]
  /// Stores by identifier.
  package var stores: [StoreIdentifier: StoredStore] = [:]

  /// Makes an empty snapshot.
  package init() {}
}

/// The input of a new replica: all persistent state, change sets by name. They are read one by one,
/// so their boxes are never in memory all at once.
package struct StorageOutline: Sendable {
  /// All but change sets.
  package var snapshot: Snapshot
  /// Names of the kept change sets, by store, in any order.
  package var changeSets: [StoreIdentifier: [ChangeSetReference]]
  /// Damaged data, which is left out.
  package var damage: StorageDamage

  /// Makes an outline.
  package init(
    snapshot: Snapshot, changeSets: [StoreIdentifier: [ChangeSetReference]],
    damage: StorageDamage = StorageDamage()
  ) {
    self.snapshot = snapshot
    self.changeSets = changeSets
    self.damage = damage
  }

  /// The outline of a snapshot.
  package init(_ snapshot: Snapshot, damage: StorageDamage = StorageDamage()) {
    var outline = snapshot
    for identifier in snapshot.stores.keys { outline.stores[identifier]?.changeSets = [:] }
    self.init(
      snapshot: outline, changeSets: snapshot.stores.mapValues { Array($0.changeSets.keys) },
      damage: damage)
  }
}

/// Damaged data: rows that differ from their checksum. `Mutation.dropDamaged` removes them.
package struct StorageDamage: Hashable, Sendable {
  /// How many rows.
  package var rows = 0
  /// Stores that may have lost change sets or entries, and how many.
  package var stores: [StoreIdentifier: StoreLoss] = [:]
  /// Whether the clock may be among them.
  package var mayLackClock = false

  /// No damage.
  package init() {}
}

/// One change of the persistent state. The core requests them in `Effect.persist`; storage applies
/// those of a commit together or not at all.
package enum Mutation: Hashable, Sendable {
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
package protocol ReplicaStorage: AnyObject, Sendable {
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
  package func changeSet(
    _ reference: ChangeSetReference, in store: StoreIdentifier
  ) throws(StorageError) -> StoredChangeSet? {
    try changeSets([reference], in: store)[0]
  }

  /// Reads all that was committed, with all boxes in memory.
  ///
  /// - Complexity: O(*n*) in the stored bytes.
  package func load() throws(StorageError) -> Snapshot {
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
package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of error. A struct, so that a new code breaks no program.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The code's name, as printed and logged.
    package let description: String

    /// The device is full.
    package static let diskFull = Self(description: "diskFull")
    /// The file system or directory cannot be written.
    package static let readOnly = Self(description: "readOnly")
    /// The file is damaged; it is never recreated silently.
    package static let damaged = Self(description: "damaged")
    /// The file was written by a newer version.
    package static let newerSchema = Self(description: "newerSchema")
    /// Another node owns the directory.
    package static let inUse = Self(description: "inUse")
    /// The directory holds no device.
    package static let missing = Self(description: "missing")
    /// The directory already holds a device.
    package static let alreadyExists = Self(description: "alreadyExists")
    /// Modes or owner expose the secrets.
    package static let unsafePermissions = Self(description: "unsafePermissions")
    /// A passphrase is needed or wrong.
    package static let passphrase = Self(description: "passphrase")
    /// Another error of the operating system or SQLite.
    package static let inputOutput = Self(description: "inputOutput")
  }

  /// The kind of error.
  package let code: Code
  /// The file or directory concerned.
  package let path: String
  /// The problem and its remedy.
  package let message: String
  /// The process that owns the directory, with ``Code/inUse``.
  package let owner: Int32?

  /// Makes an error.
  package init(code: Code, path: String, message: String, owner: Int32? = nil) {
    self.code = code
    self.path = path
    self.message = message
    self.owner = owner
  }

  /// The message after the path.
  package var description: String { "\(path): \(message)" }
}
