import GRDB
import KithCore
import KithCrypto

/// Reads all committed data; of change sets it keeps the names.
///
/// A damaged row is left out and noted. If the replica needs it, the error names table and row.
struct SnapshotReader {
  private let database: Database
  private let statements: Statements
  private let path: String
  private(set) var index = RowIndex()
  private(set) var snapshot = Snapshot()
  private(set) var changeSets: [StoreIdentifier: [ChangeSetReference]] = [:]
  private(set) var damage = StorageDamage()
  /// By row, with the stores that may be meant.
  private var damagedChangeSets: [Int64: Set<StoreIdentifier>] = [:]
  private var storesByRow: [Int64: StoreIdentifier] = [:]
  private var changeSetsByRow: [Int64: RowIndex.ChangeSetKey] = [:]

  /// `lacksCommits`: the write-ahead log lost some, of unknown stores.
  init(
    _ database: Database, _ statements: Statements, path: String, seal: borrowing RowSeal,
    lacksCommits: Bool
  ) throws {
    self.database = database
    self.statements = statements
    self.path = path
    try readAll(seal: seal)
    if lacksCommits { lackCommits() }
  }

  var outline: StorageOutline {
    StorageOutline(snapshot: snapshot, changeSets: changeSets, damage: damage)
  }

  private mutating func readAll(seal: borrowing RowSeal) throws {
    let check = try String.fetchOne(database, sql: "PRAGMA quick_check(1)")
    guard check == "ok" else {
      throw StorageError.damagedDatabase(path, "the database is damaged (\(check ?? "no answer"))")
    }
    try readMeta()
    try readRecords()
    try readAddresses()
    try readStores()
    try readCounters()
    try readLost()
    try readLosses()
    try readHorizons()
    try readChangeSets()
    try readEntries()
    try readDrafts(seal)
    try readRefusals(seal)
    try readPastValues(seal)
    try readObjects(seal)
    snapshot.clock = index.drafts.clock
  }

  private func damagedRow(_ table: String, _ row: some CustomStringConvertible) -> StorageError {
    .damagedDatabase(path, "row \(row) of table \(table) is damaged")
  }

  // MARK: Tables with a copy

  /// Reads the table or its copy, whichever is sound, and rewrites the other.
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

  /// If the disk refuses, the next opening does it.
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
      case .keepsHistory: snapshot.keepsHistory = value != [0]
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

  /// If one is damaged, they are rewritten later.
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
    damage.mayLackClock = damage.mayLackClock || index.damaged.remains["counter"] != nil
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
    // Data that was missing may still be.
    if index.damaged.remains["lost"] != nil { noteHits(of: index.stores.keys) }
  }

  private mutating func readLosses() throws {
    for row in try soundRows(of: "loss") {
      guard let store = row[0].number.flatMap({ storesByRow[$0] }),
        case let numbers = row[1...].compactMap(\.number), numbers.count == 3
      else { throw damagedRow("loss", row[0].number ?? 0) }
      snapshot.stores[store]?.loss = StoreLoss(
        changeSets: Int(numbers[0]), entries: Int(numbers[1]), isAccepted: numbers[2] != 0)
    }
  }

  /// If a row is damaged, other devices tell the horizon again.
  private mutating func readHorizons() throws {
    for row in try soundRows(of: "horizon") {
      guard let store = row[0].number.flatMap({ storesByRow[$0] }),
        let horizon = Horizon(row[1...3])
      else { throw damagedRow("horizon", row[0].number ?? 0) }
      snapshot.stores[store]?.horizon = horizon
    }
  }

  private func chain(
    of row: [Argument], _ table: String
  ) throws -> (StoreIdentifier, (device: DeviceID, incarnation: Incarnation)) {
    guard let store = row[0].number.flatMap({ storesByRow[$0] }),
      let device = row[1].bytes.flatMap({ try? DeviceID($0) }), let incarnation = row[2].number
    else { throw damagedRow(table, row[0].number ?? 0) }
    return (store, (device, Incarnation(rawValue: UInt64(bitPattern: incarnation))))
  }

  /// Commits of unknown stores were lost.
  private mutating func lackCommits() {
    damage.rows += 1
    damage.mayLackClock = true
    noteHits(of: index.stores.keys)
  }

  // MARK: Change sets

  private mutating func readChangeSets() throws {
    try statements.read(
      """
      SELECT id, store, store_again, device, incarnation, sequence, digest, header, signature,
        checksum, entry_index, entry_checksum, entry_box
      FROM change_set
      """
    ) { row in
      let id = row.integer(0)
      index.lastChangeSet = max(index.lastChangeSet, id)
      let (number, again) = (row.integer(1), row.integer(2))
      let found = ChangeSetRow(row, from: 3)
      guard number == again, let store = storesByRow[number], let reference = found.reference
      else {
        index.damaged.changeSets.append(id)
        // One of both names the store.
        damagedChangeSets[id] = noteDamage(of: [number, again], entries: found.holdsEntry ? 1 : 0)
        return
      }
      var slot = RowIndex.Slot(id: id, inlineIndex: nil)
      if found.holdsEntry {
        if let entry = found.entry {
          slot.inlineIndex = entry.index
        } else {
          index.damaged.inlineEntries.append(id)
          damagedChangeSets[id] = noteDamage(of: [number], entries: 1)
        }
      }
      let key = RowIndex.ChangeSetKey(store: number, reference: reference)
      changeSets[store, default: []].append(reference)
      index.changeSets[key] = slot
      changeSetsByRow[id] = key
    }
  }

  private mutating func readEntries() throws {
    try statements.read(
      "SELECT id >> 32, change_set, id & 4294967295, checksum, box FROM entry"
    ) { row in
      let (id, again) = (row.integer(0), row.integer(1))
      let key = id == again ? changeSetsByRow[id] : nil
      guard let key, EntryRow(row, from: 2, of: key.reference) != nil else {
        index.damaged.entries.append((id, row.integer(2)))
        noteDamagedEntry(of: [id, again])
        return
      }
      index.changeSets[key]?.hasMore = true
    }
  }

  /// Records damage to a change set of one of these stores, or of any if there is none. Returns the
  /// stores that may be meant.
  private mutating func noteDamage(of rows: [Int64], entries: Int) -> Set<StoreIdentifier> {
    damage.rows += 1
    let named = Set(rows.compactMap { storesByRow[$0] })
    let stores = named.isEmpty ? Set(index.stores.keys) : named
    noteHits(of: stores, changeSets: 1, entries: entries)
    return stores
  }

  /// Records damage to an entry of one of these change sets: each may be meant, and lacks it. If
  /// none is known, every store may lack it.
  private mutating func noteDamagedEntry(of rows: Set<Int64>) {
    damage.rows += 1
    let known = rows.filter { changeSetsByRow[$0] != nil || damagedChangeSets[$0] != nil }
    if known.isEmpty { noteHits(of: index.stores.keys, changeSets: 1, entries: 1) }
    for row in known {
      if let stores = damagedChangeSets[row] {
        // The change set is counted already.
        noteHits(of: stores, entries: 1)
      } else if let store = changeSetsByRow[row].flatMap({ storesByRow[$0.store] }) {
        damagedChangeSets[row] = [store]
        noteHits(of: [store], changeSets: 1, entries: 1)
      }
    }
  }

  private mutating func noteHits(
    of stores: some Sequence<StoreIdentifier>, changeSets: Int = 0, entries: Int = 0
  ) {
    for store in stores {
      damage.stores[store, default: StoreLoss()].changeSets += changeSets
      damage.stores[store, default: StoreLoss()].entries += entries
    }
  }

  // MARK: Sealed rows

  private mutating func readDrafts(_ seal: borrowing RowSeal) throws {
    try statements.read("SELECT id, store, ordinal, clock, checksum, sealed FROM draft") { row in
      let id = row.integer(0)
      let ordinal = UInt64(bitPattern: row.integer(2))
      let key = DraftIndex.Key(store: row.integer(1), ordinal: ordinal)
      // The table may hold a draft twice.
      guard let store = storesByRow[key.store], index.drafts[key] == nil,
        let bytes = seal.open(row.bytes(5), at: .draft(store, ordinal))
      else { throw damagedRow("draft", ordinal) }
      snapshot.stores[store]?.drafts[ordinal] = bytes
      var clock = row.integer(3)
      let checksum = RowChecksum.of([.integer(key.store), ordinal.signed, .integer(clock)])
      // A row without a clock has none that could be wrong.
      if clock != 0, checksum != row.integer(4) {
        clock = 0
        index.damaged.drafts.append(id)
        damage.rows += 1
        damage.mayLackClock = true
      }
      let reading = HybridTime(rawValue: UInt64(bitPattern: clock))
      index.drafts.insert(DraftIndex.Slot(id: id, clock: reading), for: key)
    }
  }

  private mutating func readRefusals(_ seal: borrowing RowSeal) throws {
    try statements.read("SELECT store, number, sealed FROM refusal") { row in
      let number = UInt64(bitPattern: row.integer(1))
      guard let store = storesByRow[row.integer(0)],
        let bytes = seal.open(row.bytes(2), at: .refusal(store, number))
      else { throw damagedRow("refusal", number) }
      snapshot.stores[store]?.refusals[number] = bytes
    }
  }

  /// A damaged one is dropped: nothing depends on it.
  private mutating func readPastValues(_ seal: borrowing RowSeal) throws {
    try statements.read("SELECT id, store, number, sealed FROM past_value") { row in
      let id = row.integer(0)
      index.lastPastValue = max(index.lastPastValue, id)
      let number = UInt64(bitPattern: row.integer(2))
      let key = DraftIndex.Key(store: row.integer(1), ordinal: number)
      guard let store = storesByRow[key.store], index.pastValues[key] == nil,
        let bytes = seal.open(row.bytes(3), at: .pastValue(store, number))
      else {
        index.damaged.pastValues.append(id)
        damage.rows += 1
        return
      }
      snapshot.stores[store]?.pastValues[number] = bytes
      index.pastValues[key] = id
    }
  }
}

extension Horizon {
  /// Columns: `clock, is_below, unseen`.
  init?(_ columns: ArraySlice<Argument>) {
    let columns = Array(columns)
    guard columns.count == 3, let clock = columns[0].number, let isBelow = columns[1].number,
      let unseen = columns[2].bytes
    else { return nil }
    self.init(
      clock: HybridTime(rawValue: UInt64(bitPattern: clock)), isBelow: isBelow != 0,
      unseen: stride(from: 0, to: unseen.count, by: 32).compactMap {
        try? DeviceID(unseen[$0..<min($0 + 32, unseen.count)])
      })
  }
}

extension SnapshotReader {
  /// If one is damaged, all are dropped: the objects are read again.
  fileprivate mutating func readObjects(_ seal: borrowing RowSeal) throws {
    try statements.read("SELECT carrier, name, sealed FROM object") { row in
      let (carrier, name) = (row.bytes(0), row.bytes(1))
      guard let id = try? CarrierID(Digest128(carrier)),
        let object = try? ObjectName(Digest128(name)),
        let bytes = seal.open(row.bytes(2), at: .object(id, object))
      else {
        index.damaged.hasObjects = true
        damage.rows += 1
        return
      }
      snapshot.carriers[id, default: [:]][object] = bytes
    }
  }
}

/// Columns: `device, incarnation, sequence, digest, header, signature, checksum, entry_index,
/// entry_checksum, entry_box`.
struct ChangeSetRow {
  /// Nil if anything but the entry is damaged.
  let reference: ChangeSetReference?
  let header: [UInt8]
  let signature: [UInt8]
  let holdsEntry: Bool
  /// Nil if damaged or absent.
  let entry: EntryRow?

  init(_ row: StatementRow, from first: Int32) {
    header = row.bytes(first + 4)
    signature = row.bytes(first + 5)
    holdsEntry = !(first + 7...first + 9).allSatisfy(row.isNull)
    let named = try? ChangeSetReference(
      device: DeviceID(row.bytes(first)),
      incarnation: Incarnation(rawValue: UInt64(bitPattern: row.integer(first + 1))),
      sequence: UInt64(bitPattern: row.integer(first + 2)),
      digest: Digest256(row.bytes(first + 3)))
    guard let named,
      RowChecksum.of(named, header: header, signature: signature).number == row.integer(first + 6)
    else {
      (reference, entry) = (nil, nil)
      return
    }
    reference = named
    entry = holdsEntry ? EntryRow(row, from: first + 7, of: named) : nil
  }
}

/// Columns: `entry_index, checksum, box`.
struct EntryRow {
  let index: UInt32
  let box: [UInt8]

  /// Nil if damaged.
  init?(_ row: StatementRow, from first: Int32, of reference: ChangeSetReference) {
    guard let index = UInt32(exactly: row.integer(first)) else { return nil }
    let box = row.bytes(first + 2)
    guard
      RowChecksum.of(reference, index: index, box: box).number == row.integer(first + 1)
    else { return nil }
    self.index = index
    self.box = box
  }
}
