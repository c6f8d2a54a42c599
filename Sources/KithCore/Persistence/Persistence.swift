/// The input of a new replica: all persistent state, with change sets only named. They are read one
/// by one, so that their boxes are never all in memory.
package struct StorageOutline: Sendable {
  /// Without change sets.
  package var snapshot: Snapshot
  /// The indices of their entries, in any order.
  package var changeSets: [StoreIdentifier: [ChangeSetReference: [UInt32]]]
  /// Data left out as damaged.
  package var damage: StorageDamage

  package init(
    snapshot: Snapshot, changeSets: [StoreIdentifier: [ChangeSetReference: [UInt32]]],
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
      snapshot: outline,
      changeSets: snapshot.stores.mapValues { $0.changeSets.mapValues { Array($0.entries.keys) } },
      damage: damage)
  }
}

/// Rows that do not open. Removing ``RowKey/damaged`` removes them.
package struct StorageDamage: Hashable, Sendable {
  package var rows = 0
  /// The loss of each store, if other devices' data may be missing: it is not known of which store.
  package var loss: StoreLoss?

  package init(rows: Int = 0, loss: StoreLoss? = nil) {
    (self.rows, self.loss) = (rows, loss)
  }
}

/// A replica's storage, a map of rows: SQLite in production, memory in tests and simulations. All
/// pass the same conformance tests.
package protocol ReplicaStorage: AnyObject, Sendable {
  /// Whether the data was copied or restored, and has no new incarnation yet (`Docs/Protocol.md`,
  /// "Copies").
  var isCopy: Bool { get }

  /// Reads everything, with change sets only named; rows that do not open are left out.
  ///
  /// - Throws: `damaged` if no replica can be made without a damaged part.
  func outline() throws(StorageError) -> StorageOutline

  /// Reads rows in the order of their keys; nil for one that is not there.
  ///
  /// - Throws: `damaged` if one does not open.
  func rows(_ keys: [RowKey]) throws(StorageError) -> [[UInt8]?]

  /// Applies mutations durably, all or none; of several of one row the last counts.
  ///
  /// Calls `written` at most once before it returns: when the mutations survive the end of the
  /// process, but not yet that of the host. If the commit fails then, no mutation is applied, and from
  /// now on ``isCopy`` is true: others, or a backup of that moment, may have what this database lacks.
  func commit(_ mutations: [Mutation], written: @Sendable () -> Void) throws(StorageError)
}

extension ReplicaStorage {
  package func commit(_ mutations: [Mutation]) throws(StorageError) {
    try commit(mutations) {}
  }

  /// Reads everything, with all boxes in memory.
  ///
  /// - Complexity: O(*n*) in the stored bytes.
  package func load() throws(StorageError) -> Snapshot { try load(outline()) }

  /// Reads the rest of an outline, with all boxes in memory.
  ///
  /// - Complexity: O(*n*) in the bytes of change sets.
  package func load(_ outline: StorageOutline) throws(StorageError) -> Snapshot {
    var snapshot = outline.snapshot
    for (store, changeSets) in outline.changeSets {
      for (reference, indices) in changeSets {
        let keys = reference.keys(indices, in: store)
        for (key, row) in zip(keys, try rows(keys)) { snapshot[key] = row }
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
    /// Written by a version before the first release.
    package static let olderSchema = Self(description: "olderSchema")
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
