import Foundation
import GRDB
import KithCore
import KithCrypto

/// Reads everything that was committed but change sets, of which it reads and compares all, one after
/// the other, and keeps the names. What differs from its checksum is left out and noted; without some
/// of it there is no replica, and then it is reported with its table and number.
struct SnapshotReader {
  private let database: Database
  private let path: String
  private(set) var index = RowIndex()
  private(set) var snapshot = Snapshot()
  private(set) var changeSets: [StoreIdentifier: [ChangeSetReference]] = [:]
  private(set) var damage = StorageDamage()
  private var storesByRow: [Int64: StoreIdentifier] = [:]
  private var changeSetsByRow: [Int64: RowIndex.ChangeSetKey] = [:]

  init(_ database: Database, path: String) {
    self.database = database
    self.path = path
  }

  var outline: StorageOutline {
    StorageOutline(snapshot: snapshot, changeSets: changeSets, damage: damage)
  }

  mutating func readAll(seal: borrowing RowSeal) throws {
    let check = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
    guard check == "ok" else {
      throw StorageError.damaged(path, "the database is damaged (\(check ?? "no answer"))")
    }
    try readMeta()
    try readRecords()
    try readAddresses()
    try readStores()
    try readCounters()
    try readLost()
    try readChangeSets()
    try readEntries()
    try readDrafts(seal)
    try readRefusals(seal)
    snapshot.clock = index.drafts.clock
  }

  private func damagedRow(_ table: String, _ row: some CustomStringConvertible) -> StorageError {
    .damaged(path, "row \(row) of table \(table) is damaged")
  }

  // MARK: What is kept twice

  /// The rows of a table that is kept twice: those of the copy, where one of its own does not hold.
  /// The one that does not hold is made anew.
  private mutating func rows(of twin: Twin) throws -> [[Argument]] {
    let first = try CheckedRows(database, twin.table)
    let second = try CheckedRows(database, twin.copy)
    damage.rows += (first.rows + second.rows).count { !$0.isSound }
    if first.areSound {
      if !second.areSound { rewrite(twin.copy, first.sound) }
      return first.sound
    }
    guard second.areSound else {
      throw damagedRow(twin.table, (first.rows.firstIndex { !$0.isSound } ?? 0) + 1)
    }
    rewrite(twin.table, second.sound)
    return second.sound
  }

  /// Where the disk does not take it now, the next opening does it.
  private func rewrite(_ table: String, _ rows: [[Argument]]) {
    try? database.inTransaction(.immediate) {
      try CheckedRows.rewrite(database, table, rows)
      return .commit
    }
  }

  private mutating func readMeta() throws {
    for row in try rows(of: .meta) {
      guard let value = row[1].bytes else { continue }
      switch row[0].string.flatMap(Meta.Name.init) {
      case .incarnation:
        guard let incarnation = UInt64(bigEndian: value) else {
          throw damagedRow("meta", Meta.Name.incarnation.rawValue)
        }
        snapshot.incarnation = Incarnation(rawValue: incarnation)
      default: break
      }
    }
  }

  private mutating func readRecords() throws {
    for row in try rows(of: .record) {
      guard let digest = row[0].bytes.flatMap({ try? Digest256($0) }), let body = row[1].bytes
      else { throw damagedRow("record", "with an impossible digest") }
      snapshot.records[digest] = body
    }
  }

  private mutating func readStores() throws {
    for row in try rows(of: .store) {
      guard let id = row[0].number, let name = row[1].string,
        let store = StoreIdentifier(name),
        case let numbers = row[2...].compactMap(\.number).map({ Int($0) }), numbers.count == 6
      else { throw damagedRow("store", row[0].number ?? 0) }
      let policy = Policy(
        totalBytes: numbers[0], keys: numbers[1], keyBytes: numbers[2], valueBytes: numbers[3])
      var stored = StoredStore(policy: policy)
      stored.adopted = HybridTime(rawValue: UInt64(bitPattern: Int64(numbers[4])))
      stored.isOpened = numbers[5] != 0
      snapshot.stores[store] = stored
      index.stores[store] = id
      index.storeRows[store] = RowIndex.Store(
        policy: policy, adopted: stored.adopted, isOpened: stored.isOpened)
      index.lastStore = max(index.lastStore, id)
      storesByRow[id] = store
    }
  }

  // MARK: Small tables

  /// The rows of a small table that hold. Where one does not, all are written anew by and by.
  private mutating func soundRows(of table: String) throws -> [[Argument]] {
    let rows = try CheckedRows(database, table)
    if !rows.areSound {
      damage.rows += rows.rows.count { !$0.isSound }
      index.damaged.remains[table] = rows.sound
    }
    return rows.sound
  }

  private mutating func readAddresses() throws {
    let rows = try soundRows(of: "address")
      .sorted { ($0[1].number ?? 0) < ($1[1].number ?? 0) }
    for row in rows {
      guard let device = row[0].bytes.flatMap({ try? DeviceID($0) }), let text = row[2].string
      else { throw damagedRow("address", row[1].number ?? 0) }
      snapshot.addresses[device, default: []].append(text)
    }
  }

  private mutating func readCounters() throws {
    let rows = try soundRows(of: "counter")
    damage.mayLackClock = index.damaged.remains["counter"] != nil
    for row in rows {
      guard let number = row[0].number, let value = row[3].number.map({ UInt64(bitPattern: $0) })
      else { throw damagedRow("counter", 0) }
      if number == 0 {
        index.drafts.raiseClock(to: HybridTime(rawValue: value))
        index.drafts.noteCounter()
        continue
      }
      let (store, chain) = try chain(of: row, "counter")
      snapshot.stores[store]?.vector[chain.device, default: [:]][chain.incarnation] = value
    }
  }

  private mutating func readLost() throws {
    for row in try soundRows(of: "lost") {
      let (store, chain) = try chain(of: row, "lost")
      snapshot.stores[store]?.lost[chain.device, default: [:]][chain.incarnation] =
        row[3].number.map { UInt64(bitPattern: $0) }
    }
    // What was missing before may be missing still.
    if index.damaged.remains["lost"] != nil { damage.stores.formUnion(index.stores.keys) }
  }

  private func chain(
    of row: [Argument], _ table: String
  ) throws -> (StoreIdentifier, (device: DeviceID, incarnation: Incarnation)) {
    guard let store = row[0].number.flatMap({ storesByRow[$0] }),
      let device = row[1].bytes.flatMap({ try? DeviceID($0) }), let incarnation = row[2].number
    else { throw damagedRow(table, row[0].number ?? 0) }
    return (store, (device, Incarnation(rawValue: UInt64(bitPattern: incarnation))))
  }

  // MARK: Change sets

  private mutating func readChangeSets() throws {
    let rows = try Row.fetchCursor(
      database, sql: "SELECT id, store, store_again, \(ChangeSetRow.columns) FROM change_set")
    while let row = try rows.next() {
      let id: Int64 = row[0]
      index.lastChangeSet = max(index.lastChangeSet, id)
      let (number, again): (Int64, Int64) = (row[1], row[2])
      let found = ChangeSetRow(row, from: 3)
      guard number == again, let store = storesByRow[number], let reference = found.reference,
        found.isSound
      else {
        index.damaged.changeSets.append(id)
        // Either names the store, if it is not what is damaged.
        noteDamage(of: number == again ? storesByRow[number] : nil)
        continue
      }
      var slot = RowIndex.Slot(id: id, inlineIndex: nil)
      if found.holdsEntry {
        if let entry = found.entry {
          slot.inlineIndex = entry.index
        } else {
          index.damaged.inlineEntries.append(id)
          noteDamage(of: store)
        }
      }
      let key = RowIndex.ChangeSetKey(store: number, reference: reference)
      changeSets[store, default: []].append(reference)
      index.changeSets[key] = slot
      changeSetsByRow[id] = key
    }
  }

  private mutating func readEntries() throws {
    let rows = try Row.fetchCursor(
      database, sql: "SELECT change_set, change_set_again, \(EntryRow.columns) FROM entry")
    while let row = try rows.next() {
      let (id, again): (Int64, Int64) = (row[0], row[1])
      let key = id == again ? changeSetsByRow[id] : nil
      guard let key, EntryRow(row, from: 2, of: key.reference) != nil else {
        index.damaged.entries.append((id, row[2]))
        noteDamage(of: key.flatMap { storesByRow[$0.store] })
        continue
      }
      index.changeSets[key]?.hasMore = true
    }
  }

  /// A change set or an entry is damaged: of a store, or, where that cannot be told, of any.
  private mutating func noteDamage(of store: StoreIdentifier?) {
    damage.rows += 1
    if let store { damage.stores.insert(store) } else { damage.stores.formUnion(index.stores.keys) }
  }

  // MARK: Sealed rows

  private mutating func readDrafts(_ seal: borrowing RowSeal) throws {
    let rows = try Row.fetchCursor(
      database, sql: "SELECT id, store, ordinal, clock, checksum, sealed FROM draft")
    while let row = try rows.next() {
      let ordinal = UInt64(bitPattern: row[2] as Int64)
      let key = DraftIndex.Key(store: row[1], ordinal: ordinal)
      // Nothing in the table keeps a draft from being there twice.
      guard let store = storesByRow[key.store], index.drafts[key] == nil,
        let bytes = seal.open(.draft, store, ordinal, row.bytes(5))
      else { throw damagedRow("draft", ordinal) }
      snapshot.stores[store]?.drafts[ordinal] = bytes
      var clock: Int64 = row[3]
      let checksum = RowChecksum.of([.integer(key.store), ordinal.signed, .integer(clock)])
      // A row that holds no clock has none that could be wrong.
      if clock != 0, checksum != row[4] as Int64 {
        clock = 0
        index.damaged.drafts.append(row[0])
        damage.rows += 1
        damage.mayLackClock = true
      }
      let reading = HybridTime(rawValue: UInt64(bitPattern: clock))
      index.drafts.insert(DraftIndex.Slot(id: row[0], clock: reading), for: key)
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

/// A row of the table of change sets, compared with its checksums.
struct ChangeSetRow {
  static let columns = """
    device, incarnation, sequence, digest, header, signature, checksum, entry_index,
    entry_checksum, entry_box
    """

  let reference: ChangeSetReference?
  let header: [UInt8]
  let signature: [UInt8]
  /// Whether all but the entry holds.
  let isSound: Bool
  /// Whether there is an entry in the row.
  let holdsEntry: Bool
  /// The entry, if it holds.
  let entry: (index: UInt32, box: [UInt8])?

  init(_ row: Row, from first: Int) {
    let (device, digest) = (row.bytes(first), row.bytes(first + 3))
    let (incarnation, sequence): (Int64, Int64) = (row[first + 1], row[first + 2])
    header = row.bytes(first + 4)
    signature = row.bytes(first + 5)
    let name = ChangeSetName(
      device: device, incarnation: .integer(incarnation), sequence: .integer(sequence),
      digest: digest)
    isSound =
      RowChecksum.of(name, header: header, signature: signature).number == row[first + 6] as Int64
    if let device = try? DeviceID(device), let digest = try? Digest256(digest) {
      reference = ChangeSetReference(
        device: device, incarnation: Incarnation(rawValue: UInt64(bitPattern: incarnation)),
        sequence: UInt64(bitPattern: sequence), digest: digest)
    } else {
      reference = nil
    }
    let index = row[first + 7] as Int64?
    let checksum = row[first + 8] as Int64?
    let box = row[first + 9] as Data?
    holdsEntry = index != nil || checksum != nil || box != nil
    if let index = index.flatMap(UInt32.init(exactly:)), let checksum,
      let box = box.map(Array.init),
      RowChecksum.of(digest: digest, index: index, box: box).number == checksum
    {
      entry = (index, box)
    } else {
      entry = nil
    }
  }
}

/// A row of the table of further entries.
struct EntryRow {
  static let columns = "entry_index, checksum, box"

  let index: UInt32
  let box: [UInt8]

  /// Nil where it differs from its checksum.
  init?(_ row: Row, from first: Int, of reference: ChangeSetReference) {
    guard let index = UInt32(exactly: row[first] as Int64) else { return nil }
    let box = row.bytes(first + 2)
    guard
      RowChecksum.of(digest: reference.digest.bytes, index: index, box: box).number
        == row[first + 1] as Int64
    else { return nil }
    self.index = index
    self.box = box
  }
}

extension Row {
  /// A blob as bytes.
  fileprivate func bytes(_ column: Int) -> [UInt8] { Array(self[column] as Data) }
}
