internal import KithCrypto

/// A batch of change sets in storage, whose boxes are read when it is sent.
///
/// Its content is the storage's at its place among the effects. Before a shell joins several
/// persists into one commit it calls ``Swift/Array/filled(from:)``.
package struct StoredBatch: Hashable, Sendable {
  /// Its store.
  package let store: StoreIdentifier
  var answers: UInt64 = 0
  var isEverything = false
  /// The rest of the answer follows.
  var isUnfinished = false
  var changeSets: [KeptChangeSet] = []
  var covers: [Cover] = []
  /// Change sets as of this place, if a later effect alters them; nil: not there.
  private var held: [ChangeSetReference: StoredChangeSet?] = [:]

  init(store: StoreIdentifier, answers: UInt64 = 0, isEverything: Bool = false) {
    self.store = store
    self.answers = answers
    self.isEverything = isEverything
  }

  var isEmpty: Bool { changeSets.isEmpty && covers.isEmpty }

  /// The approximate size of its messages, in bytes.
  package var byteCount: Int { changeSets.reduce(Limits.overheadBytes) { $0 + $1.weight } }

  /// Encodes its messages, one after another.
  ///
  /// If storage lacks a change set, that is a defect: its chain is not covered, so the receiver
  /// asks others for it.
  ///
  /// - Returns: How many change sets are missing, or lack an entry.
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
        covers: part.isLast ? covers.filter { !lacking.contains($0.chain) } : [])
      body(frame.encoded(wire))
    }
    return missing
  }

  /// Stores a change set as of this place.
  fileprivate mutating func hold(_ changeSet: StoredChangeSet?, as reference: ChangeSetReference) {
    held.updateValue(changeSet, forKey: reference)
  }
}

extension [Effect] {
  /// Returns the effects, whose stored batches hold the change sets that these effects remove or
  /// change: after the commit they could not be read.
  ///
  /// - Parameter storage: The state before these effects.
  /// - Returns: The effects, in the same order.
  /// - Throws: The storage's error.
  package func filled(from storage: any ReplicaStorage) throws(StorageError) -> [Effect] {
    var sent = Set<Place>()
    for case .sendStored(_, let batch) in self {
      for kept in batch.changeSets {
        sent.insert(Place(store: batch.store, reference: kept.reference))
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
      case .sendStored(let session, var batch):
        for kept in batch.changeSets {
          let place = Place(store: batch.store, reference: kept.reference)
          if removed.contains(place) { batch.hold(try read(place), as: kept.reference) }
        }
        filled[index] = .sendStored(session, batch)
      default: break
      }
    }
    return filled
  }
}

/// The place of a change set.
private struct Place: Hashable {
  var store: StoreIdentifier
  var reference: ChangeSetReference
}

extension Mutation {
  /// Its change set.
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
