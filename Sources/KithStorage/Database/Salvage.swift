import KithCore
import KithCrypto

/// The rows of a database whose structure is damaged that open, for a new one, whatever page has them.
///
/// A damaged page may show a row that was removed from it, as an older backup does.
struct Salvage {
  private(set) var snapshot = Snapshot()
  /// Whether all rows are there that other devices cannot give back: of the tables `own` and `vital`.
  private(set) var hasAllOwn = false
  /// Whether all rows of the table `shared` are there. If not, the snapshot covers nothing.
  private(set) var hasAllShared = false

  private let device: DeviceID
  /// The newest row of each key.
  private var rows: [RowKey: SealedRow] = [:]
  /// The tables of a page's rows; nil in it for a row that does not open.
  private var tablesByPage: [Int: Set<RowTable?>] = [:]

  /// Reads the files of a closed database.
  ///
  /// - Throws: `damaged` if it is another device's.
  init(_ path: String, of device: DeviceID, seal: RowSeal) throws(StorageError) {
    self.device = device
    let pages = DatabasePages(try DatabaseImage(path), roots: try Schema.roots())
    for found in pages.rows {
      let row = found.sealed.flatMap { seal.open($0) }
      tablesByPage[found.page, default: []].insert(row?.key.table)
      guard let row, row.stamp.number >= rows[row.key]?.stamp.number ?? 0 else { continue }
      rows[row.key] = row
    }
    // The keys of another device open no row.
    guard pages.rows.isEmpty || !rows.isEmpty else { throw .anotherDevice(path) }
    let hasVital = isWhole(.vital, in: pages) || isWhole(.vitalCopy, in: pages)
    hasAllOwn = hasVital && isWhole(.own, in: pages)
    hasAllShared =
      hasVital && isWhole(.shared, in: pages)
      && WriteAheadLog(path + "-wal")?.isDamaged != true
    for row in rows.values { snapshot[row.key] = Array(row.bytes) }
    let stamps = rows.values.lazy.map(\.stamp)
    // The newest row may be missing.
    let hasAll = hasAllOwn && hasAllShared && isWhole(.spare, in: pages)
    let newest = hasAll ? stamps.map(\.number).max() ?? 0 : 0
    snapshot.clock = stamps.filter { $0.number >= newest }.map(\.clock).max() ?? .zero
    if !hasAllShared {
      for store in snapshot.stores.keys { coverNothing(of: store) }
    }
  }

  /// Whether a table's tree is sound, and all its rows open and belong there.
  private func isWhole(_ table: RowTable, in pages: DatabasePages) -> Bool {
    guard let tree = pages.trees[table.name], tree.isSound else { return false }
    return tree.pages.allSatisfy {
      tablesByPage[$0, default: []].isSubset(of: [table.original])
    }
  }

  /// All that was covered counts as lost until it is again.
  private mutating func coverNothing(of store: StoreIdentifier) {
    guard var stored = snapshot.stores[store] else { return }
    stored.lost.merge(stored.vector, uniquingKeysWith: max)
    stored.vector = [:]
    if stored.lost.isEmpty {
      // No row tells how far chains were covered; the change sets tell of a part.
      for reference in stored.changeSets.keys {
        stored.lost[reference.chain] = max(
          stored.lost[reference.chain] ?? 0, reference.sequence)
      }
    }
    if stored.lost.isEmpty {
      let own = snapshot.incarnation ?? Incarnation(rawValue: 0)
      stored.lost = [ChainID(device: device, incarnation: own): 1]
    }
    let before = stored.loss?.isAccepted == false ? stored.loss : nil
    stored.loss = StoreLoss(rows: before?.rows ?? 0)
    snapshot.stores[store] = stored
  }

  /// The number of writes that no other device has, as far as they were found.
  var drafts: Int { snapshot.stores.values.reduce(0) { $0 + $1.drafts.count } }

  /// For an empty database. Without an incarnation: the device takes a new one, because its chain may
  /// not be whole. Objects of carriers are read again.
  var mutations: [Mutation] {
    let carriers = RowKey.storage(.carriers)
    return snapshot.mutations {
      switch $0 {
      case .incarnation, .object: false
      default: true
      }
    } + (rows[carriers].map { [.put(carriers, Array($0.bytes))] } ?? [])
  }
}
