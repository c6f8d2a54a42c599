internal import KithCrypto

/// A batch whose boxes are read from storage when it is sent.
///
/// Its content is the storage's at its place among the effects. So a shell calls
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
  /// Change sets that a later effect alters, as of this place; nil: absent.
  private var held: [ChangeSetReference: StoredChangeSet?] = [:]

  init(store: StoreIdentifier, answers: UInt64 = 0, isEverything: Bool = false) {
    self.store = store
    self.answers = answers
    self.isEverything = isEverything
  }

  var isEmpty: Bool { changeSets.isEmpty && covers.isEmpty }

  /// The approximate bytes of its messages.
  package var byteCount: Int { changeSets.reduce(Limits.overheadBytes) { $0 + $1.weight } }

  /// Encodes its messages in order. Returns how many change sets are missing or lack an entry.
  ///
  /// Missing data is a defect. Its chain is not covered, so the receiver asks others for it.
  ///
  /// - Throws: The storage's error; `damaged` if a change set is damaged.
  /// - Complexity: O(*n*) in the bytes.
  package func forEachMessage(
    from storage: any ReplicaStorage, _ body: ([UInt8]) -> Void
  ) throws(StorageError) -> Int {
    try forEachMessage(
      { (references) throws(StorageError) in try storage.changeSets(references, in: store) }, body)
  }

  package func forEachMessage(
    _ stored: ([ChangeSetReference]) throws(StorageError) -> [StoredChangeSet?],
    _ body: ([UInt8]) -> Void
  ) throws(StorageError) -> Int {
    var missing = 0
    var lacking = Set<ChainID>()
    for part in BatchFrame.parts(of: changeSets.map(\.weight), covers: covers.count) {
      let unheld = changeSets[part.range].map(\.reference).filter { !held.keys.contains($0) }
      var read = try stored(unheld).makeIterator()
      var wire: [WireChangeSet] = []
      wire.reserveCapacity(part.range.count)
      for kept in changeSets[part.range] {
        let isHeld = held.keys.contains(kept.reference)
        let found = (isHeld ? held[kept.reference] : read.next()) ?? nil
        if let found { wire.append(found.wire) }
        if !kept.indices.allSatisfy({ found?.entries[$0] != nil }) || found == nil {
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

  fileprivate mutating func hold(_ changeSet: StoredChangeSet?, as reference: ChangeSetReference) {
    held.updateValue(changeSet, forKey: reference)
  }
}

extension [Effect] {
  /// Returns the effects; their stored batches hold the change sets that these effects remove or
  /// change, because the commit makes them unreadable. `storage`: the state before these effects.
  package func filled(from storage: any ReplicaStorage) throws(StorageError) -> [Effect] {
    var sent = Set<Place>()
    for effect in self {
      for batch in effect.storedBatches {
        for kept in batch.changeSets {
          sent.insert(Place(store: batch.store, reference: kept.reference))
        }
      }
    }
    guard !sent.isEmpty else { return self }
    var removed = Set<Place>()
    for case .persist(let mutations) in self {
      for mutation in mutations {
        switch mutation {
        case .removeEntry(let store, let reference, _), .removeChangeSet(let store, let reference):
          removed.insert(Place(store: store, reference: reference))
        default: break
        }
      }
    }
    removed.formIntersection(sent)
    guard !removed.isEmpty else { return self }
    var overlay: [Place: StoredChangeSet?] = [:]
    func read(_ place: Place) throws(StorageError) -> StoredChangeSet? {
      if let known = overlay[place] { return known }
      return try storage.changeSet(place.reference, in: place.store)
    }
    var filled = self
    for (index, effect) in enumerated() {
      switch effect {
      case .persist(let mutations):
        for mutation in mutations {
          guard let place = mutation.place, removed.contains(place) else { continue }
          var changeSet = try read(place)
          mutation.apply(to: &changeSet)
          overlay.updateValue(changeSet, forKey: place)
        }
      default:
        var batches = effect.storedBatches
        for number in batches.indices {
          for kept in batches[number].changeSets {
            let place = Place(store: batches[number].store, reference: kept.reference)
            if removed.contains(place) {
              batches[number].hold(try read(place), as: kept.reference)
            }
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

private struct Place: Hashable {
  var store: StoreIdentifier
  var reference: ChangeSetReference
}

extension Mutation {
  fileprivate var place: Place? {
    switch self {
    case .putHeader(let store, let reference, _, _), .removeChangeSet(let store, let reference),
      .putEntry(let store, let reference, _, _), .removeEntry(let store, let reference, _):
      Place(store: store, reference: reference)
    default: nil
    }
  }

  fileprivate func apply(to changeSet: inout StoredChangeSet?) {
    switch self {
    case .putHeader(_, _, let header, let signature):
      changeSet = StoredChangeSet(
        header: header, signature: signature, entries: changeSet?.entries ?? [:])
    case .removeChangeSet: changeSet = nil
    case .putEntry(_, _, let index, let box): changeSet?.entries[index] = box
    case .removeEntry(_, _, let index): changeSet?.entries[index] = nil
    default: break
    }
  }
}
