import KithCore
import KithCrypto

/// The sound rows of a database whose structure is damaged, as a snapshot for a new one.
///
/// A row counts if its checksum or seal confirms it, whatever page has it. A damaged page may show a
/// row that was removed from it, as an older backup does.
struct Salvage {
  private(set) var snapshot = Snapshot()
  /// The list of the device's own carriers.
  private(set) var carriers: [UInt8]?
  /// Whether all rows are there that other devices cannot give back: drafts, refusals, this device's
  /// own carriers, records and stores.
  private(set) var hasAllOwn = false
  /// Whether all change sets are there. If not, the snapshot covers nothing.
  private(set) var hasAllShared = false

  /// Of the device that the database names; nil: it names none.
  private var namedDevice: [UInt8]?
  private let device: DeviceID
  private var incarnation = Incarnation(rawValue: 0)
  private var storesByRow: [Int64: StoreIdentifier] = [:]
  private var changeSetsByRow: [Int64: [(store: StoreIdentifier, reference: ChangeSetReference)]] =
    [:]
  private var draftClocks: [StoreIdentifier: [UInt64: HybridTime]] = [:]
  /// The tables whose rows a page has; the empty name is that of rows that nothing confirms.
  private var tablesByPage: [Int: Set<String>] = [:]

  /// Reads the files of a closed database.
  ///
  /// - Throws: `damaged` if it is another device's.
  init(_ path: String, of device: DeviceID, seal: borrowing RowSeal) throws(StorageError) {
    self.device = device
    let pages = DatabasePages(try DatabaseImage(path), roots: try Schema.roots())
    // Rows name others: first the stores, then the change sets.
    var rest = pages.rows
    for kind in [Reading.named, .changeSets, .dependent] {
      rest = rest.filter { row in
        guard let table = table(taking: row, kind, pages, seal) else { return true }
        tablesByPage[row.page, default: []].insert(table)
        return false
      }
    }
    for row in rest { tablesByPage[row.page, default: []].insert("") }
    if let namedDevice, namedDevice != device.bytes { throw .anotherDevice(path) }
    judge(pages, lacksCommits: WriteAheadLog(path + "-wal")?.isDamaged ?? false)
  }

  private enum Reading {
    case named
    case changeSets
    case dependent
  }

  /// Takes a row that is confirmed; returns the name of its table, or of the table of which it may be
  /// a copy.
  private mutating func table(
    taking row: DatabasePages.Row, _ reading: Reading, _ pages: DatabasePages,
    _ seal: borrowing RowSeal
  ) -> String? {
    let columns = row.columns
    switch (reading, row.kind, columns.count) {
    case (.named, .index, 3): return takeMeta(columns, seal) ?? takeRecord(columns)
    case (.named, .index, 4): return takeAddress(columns)
    case (.named, .table, 9): return takeStore(columns)
    case (.changeSets, .index, 5):
      return takeCounter(columns, isLost: pages.trees["lost"]?.pages.contains(row.page) == true)
    case (.changeSets, .table, 5): return takeLoss(columns) ?? takeHorizon(columns)
    case (.changeSets, .table, 13): return takeChangeSet(columns)
    case (.dependent, .table, 4): return takeEntry(columns) ?? takePastValue(columns, seal)
    case (.dependent, .table, 6): return takeDraft(columns, seal)
    case (.dependent, .index, 3): return takeRefusal(columns, seal) ?? takeObject(columns, seal)
    default: return nil
    }
  }

  private static func isConfirmed(_ columns: [Argument]) -> Bool {
    columns.last?.number == RowChecksum.of(Array(columns.dropLast()))
  }

  // MARK: Judging

  /// Whether a table's tree is sound, and all its rows are confirmed.
  private func isWhole(_ name: String, in pages: DatabasePages) -> Bool {
    guard let tree = pages.trees[name], tree.isSound else { return false }
    let table = Self.family(of: name)
    return tree.pages.allSatisfy { tablesByPage[$0, default: []].isSubset(of: [table]) }
  }

  /// A table and its copy, and the two tables with chains, have the same rows.
  private static func family(of name: String) -> String {
    if name == "lost" { return "counter" }
    return name.hasSuffix("_copy") ? String(name.dropLast("_copy".count)) : name
  }

  private mutating func judge(_ pages: DatabasePages, lacksCommits: Bool) {
    func isWhole(_ name: String) -> Bool { self.isWhole(name, in: pages) }
    let hasStores = isWhole("store") || isWhole("store_copy")
    hasAllOwn =
      isWhole("draft") && isWhole("refusal") && hasStores
      && (isWhole("meta") || isWhole("meta_copy")) && (isWhole("record") || isWhole("record_copy"))
    hasAllShared =
      !lacksCommits && hasStores && ["change_set", "entry", "counter", "lost"].allSatisfy(isWhole)
    for clocks in draftClocks.values {
      snapshot.clock = max(snapshot.clock, clocks.values.max() ?? .zero)
    }
    if !hasAllShared {
      for store in snapshot.stores.keys { coverNothing(of: store) }
    }
  }

  /// All that was covered counts as lost until it is again.
  private mutating func coverNothing(of store: StoreIdentifier) {
    guard var stored = snapshot.stores[store] else { return }
    stored.lost.merge(stored.vector) { $0.merging($1, uniquingKeysWith: max) }
    stored.vector = [:]
    if stored.lost.isEmpty {
      // No row tells how far chains were covered; the change sets tell of a part.
      for reference in stored.changeSets.keys {
        let known = stored.lost[reference.device]?[reference.incarnation] ?? 0
        stored.lost[reference.device, default: [:]][reference.incarnation] =
          max(known, reference.sequence)
      }
    }
    if stored.lost.isEmpty { stored.lost = [device: [incarnation: 1]] }
    let before = stored.loss?.isAccepted == false ? stored.loss : nil
    stored.loss = StoreLoss(
      changeSets: before?.changeSets ?? 0, entries: before?.entries ?? 0)
    snapshot.stores[store] = stored
  }
}

// MARK: - Small tables

extension Salvage {
  private mutating func takeMeta(_ columns: [Argument], _ seal: borrowing RowSeal) -> String? {
    guard Self.isConfirmed(columns), let name = columns[0].string, let value = columns[1].bytes
    else { return nil }
    switch Meta.Name(rawValue: name) {
    case .incarnation:
      if let number = UInt64(bigEndian: value) { incarnation = Incarnation(rawValue: number) }
    case .keepsHistory: snapshot.keepsHistory = value != [0]
    case .device: namedDevice = value
    case .carriers: carriers = seal.open(value, at: .carriers)
    case .fileIdentity, .generations, nil: break
    }
    return "meta"
  }

  private mutating func takeRecord(_ columns: [Argument]) -> String? {
    guard Self.isConfirmed(columns), let digest = columns[0].bytes.flatMap({ try? Digest256($0) }),
      let body = columns[1].bytes
    else { return nil }
    snapshot.records[digest] = body
    return "record"
  }

  private mutating func takeAddress(_ columns: [Argument]) -> String? {
    guard Self.isConfirmed(columns), let device = columns[0].bytes.flatMap({ try? DeviceID($0) }),
      let address = columns[2].string
    else { return nil }
    if snapshot.addresses[device]?.contains(address) != true {
      snapshot.addresses[device, default: []].append(address)
    }
    return "address"
  }

  private mutating func takeStore(_ columns: [Argument]) -> String? {
    guard Self.isConfirmed(columns), let id = columns[0].number,
      let store = columns[1].string.flatMap({ StoreIdentifier($0) }),
      case let numbers = columns[2..<8].compactMap(\.number).map({ Int($0) }), numbers.count == 6
    else { return nil }
    storesByRow[id] = store
    var stored = StoredStore(
      policy: Policy(
        totalBytes: numbers[0], keys: numbers[1], keyBytes: numbers[2], valueBytes: numbers[3]))
    stored.adopted = max(
      snapshot.stores[store]?.adopted ?? .zero,
      HybridTime(rawValue: UInt64(bitPattern: Int64(numbers[4]))))
    stored.isOpened = snapshot.stores[store]?.isOpened == true || numbers[5] != 0
    snapshot.stores[store] = stored
    return "store"
  }

  private mutating func takeCounter(_ columns: [Argument], isLost: Bool) -> String? {
    guard Self.isConfirmed(columns), let number = columns[0].number,
      let bytes = columns[1].bytes, let incarnation = columns[2].number,
      let value = columns[3].number.map({ UInt64(bitPattern: $0) })
    else { return nil }
    if number == 0 {
      snapshot.clock = max(snapshot.clock, HybridTime(rawValue: value))
      return "counter"
    }
    guard let store = storesByRow[number], let device = try? DeviceID(bytes) else { return nil }
    let chain = Incarnation(rawValue: UInt64(bitPattern: incarnation))
    let place: WritableKeyPath<StoredStore, [DeviceID: [Incarnation: UInt64]]> =
      isLost ? \.lost : \.vector
    let known = snapshot.stores[store]?[keyPath: place][device]?[chain] ?? 0
    snapshot.stores[store]?[keyPath: place][device, default: [:]][chain] = max(known, value)
    return "counter"
  }

  private mutating func takeLoss(_ columns: [Argument]) -> String? {
    guard Self.isConfirmed(columns), let store = columns[0].number.flatMap({ storesByRow[$0] }),
      case let numbers = columns[1..<4].compactMap(\.number), numbers.count == 3
    else { return nil }
    snapshot.stores[store]?.loss = StoreLoss(
      changeSets: Int(numbers[0]), entries: Int(numbers[1]), isAccepted: numbers[2] != 0)
    return "loss"
  }
}

extension Salvage {
  /// If it is missing, other devices tell it again.
  private mutating func takeHorizon(_ columns: [Argument]) -> String? {
    guard Self.isConfirmed(columns), let store = columns[0].number.flatMap({ storesByRow[$0] }),
      let horizon = Horizon(columns[1...3]),
      horizon.clock >= snapshot.stores[store]?.horizon.clock ?? .zero
    else { return nil }
    snapshot.stores[store]?.horizon = horizon
    return "horizon"
  }
}

// MARK: - Change sets

extension Salvage {
  private mutating func takeChangeSet(_ columns: [Argument]) -> String? {
    guard let id = columns[0].number, let number = columns[1].number,
      number == columns[2].number, let store = storesByRow[number],
      let device = columns[3].bytes.flatMap({ try? DeviceID($0) }),
      let incarnation = columns[4].number, let sequence = columns[5].number,
      let digest = columns[6].bytes.flatMap({ try? Digest256($0) }),
      let header = columns[8].bytes, let signature = columns[9].bytes
    else { return nil }
    let reference = ChangeSetReference(
      device: device, incarnation: Incarnation(rawValue: UInt64(bitPattern: incarnation)),
      sequence: UInt64(bitPattern: sequence), digest: digest)
    guard
      RowChecksum.of(reference, header: header, signature: signature).number == columns[10].number
    else { return nil }
    changeSetsByRow[id, default: []].append((store, reference))
    let known = snapshot.stores[store]?.changeSets[reference]?.entries ?? [:]
    snapshot.stores[store]?.changeSets[reference] = StoredChangeSet(
      header: header, signature: signature, entries: known)
    if let header = try? ChangeSetHeader(decoding: header) {
      snapshot.clock = max(snapshot.clock, header.clock)
    }
    if case (.null, .null, .null) = (columns[7], columns[11], columns[12]) { return "change_set" }
    // Without its entry it is kept, but the row is not whole.
    guard let index = columns[7].number.flatMap({ UInt32(exactly: $0) }),
      let box = columns[12].bytes,
      RowChecksum.of(reference, index: index, box: box).number == columns[11].number
    else { return "" }
    snapshot.stores[store]?.changeSets[reference]?.entries[index] = box
    return "change_set"
  }

  private mutating func takeEntry(_ columns: [Argument]) -> String? {
    guard let id = columns[0].number, let row = columns[1].number, id >> 32 == row,
      let box = columns[3].bytes
    else { return nil }
    let index = UInt32(truncatingIfNeeded: id)
    for (store, reference) in changeSetsByRow[row] ?? []
    where RowChecksum.of(reference, index: index, box: box).number == columns[2].number {
      snapshot.stores[store]?.changeSets[reference]?.entries[index] = box
      return "entry"
    }
    return nil
  }
}

// MARK: - Sealed rows

extension Salvage {
  private mutating func takeDraft(_ columns: [Argument], _ seal: borrowing RowSeal) -> String? {
    guard let number = columns[1].number, let store = storesByRow[number],
      let ordinal = columns[2].number.map({ UInt64(bitPattern: $0) }),
      let clock = columns[3].number,
      let bytes = columns[5].bytes.flatMap({ seal.open($0, at: .draft(store, ordinal)) })
    else { return nil }
    let isClockSound =
      RowChecksum.of([.integer(number), ordinal.signed, .integer(clock)]) == columns[4].number
    let time = isClockSound ? HybridTime(rawValue: UInt64(bitPattern: clock)) : .zero
    if let known = draftClocks[store]?[ordinal], known > time { return "draft" }
    draftClocks[store, default: [:]][ordinal] = time
    snapshot.stores[store]?.drafts[ordinal] = bytes
    return "draft"
  }

  private mutating func takeRefusal(_ columns: [Argument], _ seal: borrowing RowSeal) -> String? {
    guard let store = columns[0].number.flatMap({ storesByRow[$0] }),
      let number = columns[1].number.map({ UInt64(bitPattern: $0) }),
      let bytes = columns[2].bytes.flatMap({ seal.open($0, at: .refusal(store, number)) })
    else { return nil }
    snapshot.stores[store]?.refusals[number] = bytes
    return "refusal"
  }

  private mutating func takePastValue(_ columns: [Argument], _ seal: borrowing RowSeal) -> String? {
    guard let store = columns[1].number.flatMap({ storesByRow[$0] }),
      let number = columns[2].number.map({ UInt64(bitPattern: $0) }),
      let bytes = columns[3].bytes.flatMap({ seal.open($0, at: .pastValue(store, number)) })
    else { return nil }
    snapshot.stores[store]?.pastValues[number] = bytes
    return "past_value"
  }

  /// Objects of carriers are read again.
  private func takeObject(_ columns: [Argument], _ seal: borrowing RowSeal) -> String? {
    guard let carrier = columns[0].bytes.flatMap({ try? CarrierID(Digest128($0)) }),
      let name = columns[1].bytes.flatMap({ try? ObjectName(Digest128($0)) }),
      let sealed = columns[2].bytes, seal.open(sealed, at: .object(carrier, name)) != nil
    else { return nil }
    return "object"
  }
}

extension Salvage {
  /// The number of writes that no other device has, as far as they were found.
  var drafts: Int { snapshot.stores.values.reduce(0) { $0 + $1.drafts.count } }

  /// For an empty database. Without an incarnation: the device takes a new one, because its chain may
  /// not be whole.
  var mutations: [Mutation] {
    snapshot.records.sorted { $0.key < $1.key }.map { .putRecord($0.key, $0.value) }
      + snapshot.forAnotherDevice
      + snapshot.stores.sorted { $0.key < $1.key }.flatMap { store, stored in
        stored.pastValues.sorted { $0.key < $1.key }.map { .putPastValue(store, $0.key, $0.value) }
      }
  }
}
