import Foundation
import GRDB
import KithCore
import KithCrypto

/// Reads everything that was committed, and where it is. A row that does not fit is reported with
/// its table and number.
struct SnapshotReader {
  private let database: Database
  private let path: String
  private(set) var index = RowIndex()
  private(set) var snapshot = Snapshot()
  private var storesByRow: [Int64: StoreIdentifier] = [:]
  private var changeSetsByRow: [Int64: (StoreIdentifier, ChangeSetReference)] = [:]

  init(_ database: Database, path: String) {
    self.database = database
    self.path = path
  }

  mutating func readAll(seal: borrowing RowSeal) throws {
    let check = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
    guard check == "ok" else {
      throw StorageError.damaged(path, "the database is damaged (\(check ?? "no answer"))")
    }
    try readMeta()
    try readStores()
    try readCounters()
    try readChangeSets()
    try readEntries()
    try readDrafts(seal)
    try readRefusals(seal)
    snapshot.clock = index.drafts.clock
  }

  private func damagedRow(_ table: String, _ row: some CustomStringConvertible) -> StorageError {
    .damaged(path, "row \(row) of table \(table) is damaged")
  }

  private mutating func readMeta() throws {
    if let bytes = try Meta.get(.incarnation, database) {
      guard let incarnation = UInt64(bigEndian: bytes) else {
        throw damagedRow("meta", Meta.Name.incarnation.rawValue)
      }
      snapshot.incarnation = Incarnation(rawValue: incarnation)
    }
    snapshot.isProvisional = try Meta.get(.isProvisional, database) == [1]
    let records = try Row.fetchCursor(database, sql: "SELECT rowid, digest, body FROM record")
    while let row = try records.next() {
      guard let digest = try? Digest256(row[1] as Data) else {
        throw damagedRow("record", row[0] as Int64)
      }
      snapshot.records[digest] = row.bytes(2)
    }
    let addresses = try Row.fetchCursor(
      database, sql: "SELECT device, address FROM address ORDER BY device, position")
    while let row = try addresses.next() {
      guard let device = try? DeviceID(row[0] as Data) else {
        throw damagedRow("address", row[1] as String)
      }
      snapshot.addresses[device, default: []].append(row[1])
    }
  }

  private mutating func readStores() throws {
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT id, identifier, total_bytes, keys, key_bytes, value_bytes, is_provisional FROM store
        """)
    while let row = try rows.next() {
      let id: Int64 = row[0]
      guard let store = StoreIdentifier(row[1]) else { throw damagedRow("store", id) }
      let policy = Policy(totalBytes: row[2], keys: row[3], keyBytes: row[4], valueBytes: row[5])
      snapshot.stores[store] = StoredStore(policy: policy, isProvisional: row[6])
      index.stores[store] = id
      index.lastStore = max(index.lastStore, id)
      storesByRow[id] = store
    }
  }

  private mutating func readCounters() throws {
    let rows = try Row.fetchCursor(
      database, sql: "SELECT store, device, incarnation, value FROM counter")
    while let row = try rows.next() {
      let value = UInt64(bitPattern: row[3] as Int64)
      let number: Int64 = row[0]
      if number == 0 {
        index.drafts.raiseClock(to: HybridTime(rawValue: value))
        index.drafts.noteCounter()
        continue
      }
      guard let store = storesByRow[number], let device = try? DeviceID(row[1] as Data) else {
        throw damagedRow("counter", number)
      }
      let incarnation = Incarnation(rawValue: UInt64(bitPattern: row[2] as Int64))
      snapshot.stores[store]?.vector[device, default: [:]][incarnation] = value
    }
  }

  private mutating func readChangeSets() throws {
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT id, store, device, incarnation, sequence, digest, entry_index, header, signature,
          entry_box FROM change_set
        """)
    while let row = try rows.next() {
      let id: Int64 = row[0]
      guard let store = storesByRow[row[1]], let device = try? DeviceID(row[2] as Data),
        let digest = try? Digest256(row[5] as Data)
      else { throw damagedRow("change_set", id) }
      let reference = ChangeSetReference(
        device: device, incarnation: Incarnation(rawValue: UInt64(bitPattern: row[3] as Int64)),
        sequence: UInt64(bitPattern: row[4] as Int64), digest: digest)
      var changeSet = StoredChangeSet(header: row.bytes(7), signature: row.bytes(8))
      let inlineIndex = (row[6] as Int64?).flatMap { UInt32(exactly: $0) }
      if let inlineIndex {
        guard let box = row[9] as Data? else { throw damagedRow("change_set", id) }
        changeSet.entries[inlineIndex] = Array(box)
      }
      snapshot.stores[store]?.changeSets[reference] = changeSet
      index.changeSets[.init(store: row[1], reference: reference)] = RowIndex.Slot(
        id: id, inlineIndex: inlineIndex)
      index.lastChangeSet = max(index.lastChangeSet, id)
      changeSetsByRow[id] = (store, reference)
    }
  }

  private mutating func readEntries() throws {
    let rows = try Row.fetchCursor(database, sql: "SELECT change_set, entry_index, box FROM entry")
    while let row = try rows.next() {
      let id: Int64 = row[0]
      guard let (store, reference) = changeSetsByRow[id], let number = index.stores[store],
        let entry = UInt32(exactly: row[1] as Int64)
      else { throw damagedRow("entry", id) }
      snapshot.stores[store]?.changeSets[reference]?.entries[entry] = row.bytes(2)
      index.changeSets[.init(store: number, reference: reference)]?.hasMore = true
    }
  }

  private mutating func readDrafts(_ seal: borrowing RowSeal) throws {
    let rows = try Row.fetchCursor(
      database, sql: "SELECT id, store, ordinal, clock, sealed FROM draft")
    while let row = try rows.next() {
      let ordinal = UInt64(bitPattern: row[2] as Int64)
      let key = DraftIndex.Key(store: row[1], ordinal: ordinal)
      // Nothing in the table keeps a draft from being there twice.
      guard let store = storesByRow[key.store], index.drafts[key] == nil,
        let bytes = seal.open(.draft, store, ordinal, row.bytes(4))
      else { throw damagedRow("draft", ordinal) }
      snapshot.stores[store]?.drafts[ordinal] = bytes
      let clock = HybridTime(rawValue: UInt64(bitPattern: row[3] as Int64))
      index.drafts.insert(DraftIndex.Slot(id: row[0], clock: clock), for: key)
    }
  }

  private mutating func readRefusals(_ seal: borrowing RowSeal) throws {
    let rows = try Row.fetchCursor(database, sql: "SELECT store, number, sealed FROM refusal")
    while let row = try rows.next() {
      let number = UInt64(bitPattern: row[1] as Int64)
      guard let store = storesByRow[row[0]],
        let bytes = seal.open(.refusal, store, number, row.bytes(2))
      else { throw damagedRow("refusal", number) }
      snapshot.stores[store]?.refusals[number] = bytes
    }
  }
}

extension Row {
  /// A blob as bytes.
  fileprivate func bytes(_ column: Int) -> [UInt8] { Array(self[column] as Data) }
}
