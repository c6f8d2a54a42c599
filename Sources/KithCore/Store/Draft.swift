internal import SwiftProtobuf

/// The last local write of a key, while it is not published. The drafts of one transaction have one
/// clock.
struct Draft: Hashable {
  /// The clock of its stamp.
  var clock: HybridTime
  var operation: Operation

  init(clock: HybridTime, operation: Operation) {
    self.clock = clock
    self.operation = operation
  }

  init?(decoding bytes: [UInt8]) {
    guard let wire = try? WireStoredDraft(serializedBytes: bytes), wire.hasOperation,
      let operation = Operation(wire.operation)
    else { return nil }
    self.init(clock: HybridTime(rawValue: wire.clock), operation: operation)
  }

  func encoded() -> [UInt8] {
    var wire = WireStoredDraft()
    wire.clock = clock.rawValue
    wire.operation = WireStoredOperation(operation)
    return wire.encodedBytes()
  }
}

/// The drafts of a store, and how storage differs from them.
///
/// A later write of a key replaces its draft; the other drafts of that draft's transaction stay.
/// Once the mutations of ``save(in:)`` are committed, storage holds exactly these drafts.
struct Drafts {
  private(set) var byKey: [Key: Draft] = [:]
  /// The numbers of the rows in storage. A number tells nothing of its key.
  private var rows: [Key: UInt64] = [:]
  /// Keys whose row may differ from their draft.
  private var unsaved: Set<Key> = []
  private var nextRow: UInt64 = 1
  /// Not below the number of drafts that remove a key which no device has: each removal adds one, and
  /// only a count lowers it.
  var removalsAtMost = 0

  var isEmpty: Bool { byKey.isEmpty }
  var count: Int { byKey.count }
  var isSaved: Bool { unsaved.isEmpty }

  /// Whether storage has drafts, or a commit that was asked for puts some there.
  var hasStored: Bool { !rows.isEmpty }

  /// What later writes left of each transaction, in the order of the clocks.
  ///
  /// - Complexity: O(*n* log *n*).
  var transactions: [LocalWrite] { byKey.values.transactions }

  subscript(key: Key) -> Draft? {
    get { byKey[key] }
    set {
      byKey[key] = newValue
      unsaved.insert(key)
    }
  }

  mutating func add(_ write: LocalWrite) {
    for operation in write.operations {
      self[Key(operation.key)] = Draft(clock: write.clock, operation: operation)
      if operation.value == nil { removalsAtMost += 1 }
    }
  }

  /// Drops the drafts of all other keys.
  mutating func retain(only writes: [LocalWrite]) {
    let kept = Set(writes.flatMap(\.keys))
    for key in Array(byKey.keys) where !kept.contains(key) { self[key] = nil }
  }

  /// Stamps the drafts at or after a reading again, in the order of their stamps.
  mutating func restamp(from first: HybridTime, with clock: inout TimeKeeper) {
    for write in transactions where write.clock >= first {
      let fresh: HybridTime = clock.tick()
      for key in write.keys { self[key]?.clock = fresh }
    }
  }

  // MARK: Storage

  mutating func save(in store: StoreIdentifier) -> [Mutation] {
    var removals: [Mutation] = []
    var puts: [Mutation] = []
    for key in unsaved.sorted() {
      if let draft = byKey[key] {
        let row = rows[key] ?? nextRow
        rows[key] = row
        nextRow = max(nextRow, row + 1)
        puts.append(.put(.store(store, .draft(row)), draft.encoded()))
      } else if let row = rows.removeValue(forKey: key) {
        removals.append(.remove(.store(store, .draft(row))))
      }
    }
    unsaved = []
    return removals + puts
  }

  mutating func removeAll(in store: StoreIdentifier) -> [Mutation] {
    retain(only: [])
    return save(in: store)
  }

  /// Takes a draft from its row. Nil: the row cannot be read, and stays.
  mutating func restore(_ draft: Draft?, from row: UInt64) {
    nextRow = max(nextRow, row + 1)
    guard let draft else { return }
    let key = Key(draft.operation.key)
    byKey[key] = draft
    if draft.operation.value == nil { removalsAtMost += 1 }
    rows[key] = row
  }
}

extension StoredStore {
  /// The rows of the readable drafts, ascending.
  package var draftRows: [UInt64] {
    drafts.filter { Draft(decoding: $0.value) != nil }.keys.sorted()
  }

  /// The readable drafts, as transactions, in the order of their clocks.
  package var draftedWrites: [LocalWrite] {
    drafts.values.compactMap(Draft.init(decoding:)).transactions
  }
}

extension Sequence<Draft> {
  fileprivate var transactions: [LocalWrite] {
    Dictionary(grouping: self, by: \.clock).sorted { $0.key < $1.key }.map { clock, drafts in
      LocalWrite(
        clock: clock,
        operations: drafts.map(\.operation).sorted { Key($0.key) < Key($1.key) })
    }
  }
}

extension LocalWrite {
  var keys: [Key] { operations.map { Key($0.key) } }
}

extension Operation {
  init?(_ wire: WireStoredOperation) {
    var value: EncodedValue?
    if wire.hasValue {
      value = try? EncodedValue(checking: [UInt8](wire.value))
      guard value != nil else { return nil }
    }
    self.init(key: wire.key, value: value)
  }
}

extension WireStoredOperation {
  init(_ operation: Operation) {
    self.init()
    key = operation.key
    if let value = operation.value { self.value = .init(value.bytes) }
  }
}
