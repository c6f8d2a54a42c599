package import KithCrypto

/// Names a stored change set. The digest tells the two sides of a fork apart.
package struct ChangeSetReference: Hashable, Sendable {
  package let device: DeviceID
  /// The author's database.
  package let incarnation: Incarnation
  package let sequence: UInt64
  /// BLAKE2b-256 of the header's bytes.
  package let digest: Digest256

  package init(device: DeviceID, incarnation: Incarnation, sequence: UInt64, digest: Digest256) {
    self.device = device
    self.incarnation = incarnation
    self.sequence = sequence
    self.digest = digest
  }

  package var chain: ChainID { ChainID(device: device, incarnation: incarnation) }
}

/// The signed bytes, and the entries that still count.
package struct StoredChangeSet: Hashable, Sendable {
  /// Encoded, as signed.
  package var header: [UInt8]
  /// 64 bytes.
  package var signature: [UInt8]
  /// Sealed, by index, without superseded ones.
  package var entries: [UInt32: [UInt8]]

  package init(header: [UInt8], signature: [UInt8], entries: [UInt32: [UInt8]] = [:]) {
    self.header = header
    self.signature = signature
    self.entries = entries
  }
}

package struct StoredStore: Hashable, Sendable {
  package var policy: Policy
  /// The clock of the last adopted write that may still be in the local stores.
  package var adopted = HybridTime.zero
  /// Whether a program on this host opened it.
  package var isOpened = false
  package var vector: [DeviceID: [Incarnation: UInt64]] = [:]
  /// The sequences covered when damage was found, of chains not covered so far again.
  package var lost: [DeviceID: [Incarnation: UInt64]] = [:]
  /// Nil once all is covered again.
  package var loss: StoreLoss?
  package var horizon = Horizon()
  package var changeSets: [ChangeSetReference: StoredChangeSet] = [:]
  /// By ordinal, as the core encodes them; the storage seals them.
  package var drafts: [UInt64: [UInt8]] = [:]
  /// By number; encoded and sealed like drafts.
  package var refusals: [UInt64: [UInt8]] = [:]
  /// By number; encoded and sealed like drafts.
  package var pastValues: [UInt64: [UInt8]] = [:]

  package init(policy: Policy) {
    self.policy = policy
  }
}

/// All persistent state of a replica.
package struct Snapshot: Hashable, Sendable {
  package var clock: HybridTime = .zero
  /// Nil before the first start.
  package var incarnation: Incarnation?
  /// Whether past values are kept.
  package var keepsHistory = true
  /// Encoded, by the digest of their body.
  package var records: [Digest256: [UInt8]] = [:]
  package var addresses: [DeviceID: [String]] = [:]
  package var stores: [StoreIdentifier: StoredStore] = [:]
  /// The core's notes of objects on carriers, in its encoding; the storage seals them.
  package var carriers: [CarrierID: [ObjectName: [UInt8]]] = [:]

  package init() {}
}

/// The input of a new replica: all persistent state, with change sets only named. They are read one
/// by one, so that their boxes are never all in memory.
package struct StorageOutline: Sendable {
  /// Without change sets.
  package var snapshot: Snapshot
  /// In any order.
  package var changeSets: [StoreIdentifier: [ChangeSetReference]]
  /// Data left out as damaged.
  package var damage: StorageDamage

  package init(
    snapshot: Snapshot, changeSets: [StoreIdentifier: [ChangeSetReference]],
    damage: StorageDamage = StorageDamage()
  ) {
    self.snapshot = snapshot
    self.changeSets = changeSets
    self.damage = damage
  }

  package init(_ snapshot: Snapshot, damage: StorageDamage = StorageDamage()) {
    var outline = snapshot
    for identifier in snapshot.stores.keys { outline.stores[identifier]?.changeSets = [:] }
    self.init(
      snapshot: outline, changeSets: snapshot.stores.mapValues { Array($0.changeSets.keys) },
      damage: damage)
  }
}

/// Rows that differ from their checksum. `Mutation.dropDamaged` removes them.
package struct StorageDamage: Hashable, Sendable {
  package var rows = 0
  /// Stores that may have lost change sets or entries.
  package var stores: [StoreIdentifier: StoreLoss] = [:]
  /// Whether the clock may be damaged.
  package var mayLackClock = false

  package init() {}
}

/// One change of the persistent state. Storage applies those of a commit together or not at all.
package enum Mutation: Hashable, Sendable {
  case setClock(HybridTime)
  case setIncarnation(Incarnation)
  case setKeepsHistory(Bool)
  case putRecord(Digest256, [UInt8])
  /// The record lost its place in the roster.
  case removeRecord(Digest256)
  /// Replaces the earlier ones; an empty list removes the device.
  case setAddresses(DeviceID, [String])
  /// Creates a store, or changes its policy.
  case putStore(StoreIdentifier, Policy)
  /// Local writes up to this clock were adopted.
  case setAdopted(StoreIdentifier, HybridTime)
  case setOpened(StoreIdentifier)
  /// Without entries, which are mutations of their own.
  case putHeader(StoreIdentifier, ChangeSetReference, header: [UInt8], signature: [UInt8])
  /// With all its entries.
  case removeChangeSet(StoreIdentifier, ChangeSetReference)
  case putEntry(StoreIdentifier, ChangeSetReference, index: UInt32, box: [UInt8])
  /// The header stays.
  case removeEntry(StoreIdentifier, ChangeSetReference, index: UInt32)
  /// Covers change sets up to a sequence.
  case setVector(StoreIdentifier, DeviceID, Incarnation, UInt64)
  case removeVector(StoreIdentifier, DeviceID, Incarnation)
  /// How far an incarnation was covered when damage was found.
  case setLost(StoreIdentifier, DeviceID, Incarnation, UInt64)
  /// The incarnation is covered so far again.
  case removeLost(StoreIdentifier, DeviceID, Incarnation)
  /// Nil: nothing is lost.
  case setLoss(StoreIdentifier, StoreLoss?)
  case setHorizon(StoreIdentifier, Horizon)
  /// Removes the rows that the last outline left out.
  case dropDamaged
  case putDraft(StoreIdentifier, UInt64, [UInt8])
  case removeDraft(StoreIdentifier, UInt64)
  case putRefusal(StoreIdentifier, UInt64, [UInt8])
  case removeRefusal(StoreIdentifier, UInt64)
  case putPastValue(StoreIdentifier, UInt64, [UInt8])
  case removePastValue(StoreIdentifier, UInt64)
  /// The core's note of an object on a carrier. If it is damaged, the object is read again.
  case putObject(CarrierID, ObjectName, [UInt8])
  case removeObject(CarrierID, ObjectName)
}

/// A replica's storage: SQLite in production, memory in tests and simulations. All pass the same
/// conformance tests.
package protocol ReplicaStorage: AnyObject, Sendable {
  /// Whether the data was copied or restored, and has no new incarnation yet (`Docs/Protocol.md`,
  /// "Copies").
  var isCopy: Bool { get }

  /// Reads everything, with change sets only named, and compares it with its checksums.
  ///
  /// - Throws: `damaged` if no replica can be made without a damaged part.
  func outline() throws(StorageError) -> StorageOutline

  /// Reads change sets in the order of their references; nil for one that is not kept.
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

  /// Reads everything, with all boxes in memory.
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

package struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A struct, so that a new code breaks no program.
  package struct Code: Hashable, Sendable, CustomStringConvertible {
    /// As printed and logged.
    package let description: String

    package static let diskFull = Self(description: "diskFull")
    package static let readOnly = Self(description: "readOnly")
    /// The file is never recreated silently.
    package static let damaged = Self(description: "damaged")
    package static let newerSchema = Self(description: "newerSchema")
    /// A file where a directory belongs, a directory where a file belongs, or a link.
    package static let wrongFileType = Self(description: "wrongFileType")
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

  package let code: Code
  package let path: String
  /// The problem and its remedy.
  package let message: String

  package init(code: Code, path: String, message: String) {
    self.code = code
    self.path = path
    self.message = message
  }

  package var description: String { "\(path): \(message)" }
}
