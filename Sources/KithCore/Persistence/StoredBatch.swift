internal import KithCrypto

/// A batch whose boxes are read from storage when it is sent.
///
/// Its content is the storage's at its position among the effects. So a shell calls
/// ``Swift/Array/filled(from:)`` before it joins persists into one commit.
package struct StoredBatch: Hashable, Sendable {
  package let store: StoreIdentifier
  var answers: UInt64 = 0
  var isEverything = false
  /// The rest of the answer follows.
  var isUnfinished = false
  var changeSets: [KeptChangeSet] = []
  var covers: [Cover] = []
  var horizon = HybridTime.zero
  /// Rows that a later effect alters, as of this position among the effects; nil: absent.
  private var preserved: [RowKey: [UInt8]?] = [:]

  init(store: StoreIdentifier, answers: UInt64 = 0, isEverything: Bool = false) {
    self.store = store
    self.answers = answers
    self.isEverything = isEverything
  }

  var isEmpty: Bool { changeSets.isEmpty && covers.isEmpty }

  /// The highest sequence of each chain in it.
  var vector: [ChainID: UInt64] {
    changeSets.reduce(into: [:]) { $0[$1.chain] = max($0[$1.chain] ?? 0, $1.sequence) }
  }

  /// The approximate bytes of its messages.
  package var byteCount: Int { changeSets.reduce(Limits.overheadBytes) { $0 + $1.weight } }

  /// The keys of the rows that it sends.
  fileprivate var keys: [RowKey] { changeSets.flatMap { $0.reference.keys($0.indices, in: store) } }

  /// Encodes its messages in order. Returns how many change sets are missing or lack an entry.
  ///
  /// Missing data is a defect. Its chain is not covered, so the receiver asks others for it.
  ///
  /// - Throws: The storage's error; `damaged` if a row is damaged.
  /// - Complexity: O(*n*) in the bytes.
  package func forEachMessage(
    from storage: any ReplicaStorage, _ body: ([UInt8]) -> Void
  ) throws(StorageError) -> Int {
    try forEachMessage({ (keys) throws(StorageError) in try storage.rows(keys) }, body)
  }

  package func forEachMessage(
    _ stored: ([RowKey]) throws(StorageError) -> [[UInt8]?], _ body: ([UInt8]) -> Void
  ) throws(StorageError) -> Int {
    var missing = 0
    var lacking = Set<ChainID>()
    for part in BatchFrame.parts(of: changeSets.map(\.weight), covers: covers.count) {
      let keys = changeSets[part.range].map { $0.reference.keys($0.indices, in: store) }
      var read = try stored(keys.joined().filter { !preserved.keys.contains($0) }).makeIterator()
      var wire: [WireChangeSet] = []
      wire.reserveCapacity(part.range.count)
      for (kept, keys) in zip(changeSets[part.range], keys) {
        let rows = keys.map { key in preserved[key] ?? read.next() ?? nil }
        if let found = StoredChangeSet(rows, entries: kept.indices) { wire.append(found.wire) }
        if rows.contains(nil) {
          missing += 1
          lacking.insert(kept.chain)
        }
      }
      let frame = BatchFrame(
        store: store, answers: answers, isEverything: isEverything, isUnfinished: isUnfinished,
        hasMore: !part.isLast,
        covers: part.isLast ? covers.filter { !lacking.contains($0.chain) } : [],
        horizon: horizon)
      body(frame.encoded(wire))
    }
    return missing
  }

  fileprivate mutating func preserve(_ row: [UInt8]?, as key: RowKey) {
    preserved.updateValue(row, forKey: key)
  }
}

extension [Effect] {
  /// Returns the effects; their stored batches hold the rows that these effects remove or change,
  /// because the commit makes them unreadable. `storage`: the state before these effects.
  package func filled(from storage: any ReplicaStorage) throws(StorageError) -> [Effect] {
    guard contains(where: { !$0.storedBatches.isEmpty }) else { return self }
    var removed = Set<RowKey>()
    for case .persist(let mutations) in self {
      for case .remove(let key) in mutations { removed.insert(key) }
    }
    // Most rounds remove nothing, and a catch-up sends thousands of rows.
    guard !removed.isEmpty else { return self }
    removed.formIntersection(lazy.flatMap(\.storedBatches).flatMap(\.keys))
    guard !removed.isEmpty else { return self }
    var overlay: [RowKey: [UInt8]?] = [:]
    func read(_ key: RowKey) throws(StorageError) -> [UInt8]? {
      if let known = overlay[key] { return known }
      return try storage.rows([key])[0]
    }
    var filled = self
    for (index, effect) in enumerated() {
      switch effect {
      case .persist(let mutations):
        for mutation in mutations where removed.contains(mutation.key) {
          let row: [UInt8]? = if case .put(_, let bytes) = mutation { bytes } else { nil }
          overlay.updateValue(row, forKey: mutation.key)
        }
      default:
        var batches = effect.storedBatches
        for number in batches.indices {
          for key in batches[number].keys where removed.contains(key) {
            batches[number].preserve(try read(key), as: key)
          }
        }
        if !batches.isEmpty { filled[index].storedBatches = batches }
      }
    }
    return filled
  }
}

extension Effect {
  /// The batches that are read from storage when it is carried out.
  fileprivate var storedBatches: [StoredBatch] {
    get {
      switch self {
      case .sendStored(_, let batch): [batch]
      case .carrier(_, .put(let object)): object.batches
      default: []
      }
    }
    set {
      switch self {
      case .sendStored(let session, _):
        if let batch = newValue.first { self = .sendStored(session, batch) }
      case .carrier(let carrier, .put(var object)):
        object.batches = newValue
        self = .carrier(carrier, .put(object))
      default: break
      }
    }
  }
}
