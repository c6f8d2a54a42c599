internal import KithCrypto

/// The content that a device puts on a carrier in one turn: in the lowest level that can hold it, all
/// that the objects of higher levels do not bring (`Docs/Protocol/carriers.md`, "Turns").
struct CarrierPlan {
  var level: UInt8 = 0
  var shares: [Deposit.Share] = []
  var words: [Word] = []
  var hasRecords = false

  /// Nil: the carrier lacks nothing. `mayTell`: an upload may hold only words or digests.
  /// `isAsked`: it may hold only this device's word.
  init?(
    _ objects: [CarrierObjects.Counted], _ words: [Word], _ author: ObjectAuthor,
    mayTell: Bool, isAsked: Bool
  ) {
    let reader = author.reader
    let all = Brought(by: objects, reader)
    let odd = Self.odd(objects, reader)
    let stores = reader.stores.filter { !$0.value.vector.isEmpty }
    let isLacking =
      !odd.isEmpty || !all.hasRecords || !all.hasGeneration
      || stores.contains { store, own in
        // Devices that are below their horizon wait for this state.
        !all.coversAll(of: store)
          || all.hasState(of: store) && !all.hasState(of: store, isBelow: own.horizon.isBelow)
      }
    if !isLacking {
      // No device that keeps what this one refuses has its state, or keeps an object for it.
      let lacksState = stores.contains { store, own in
        own.refused.isEmpty && !all.hasState(of: store, isBelow: own.horizon.isBelow)
      }
      let lackingWords = words.filter { all.lacks($0, of: reader) }
      guard
        mayTell && (lacksState || !lackingWords.isEmpty)
          || isAsked && lackingWords.contains(where: { $0.device == reader.device })
      else { return nil }
    }
    // What objects above each level bring.
    var brought = Brought(reader)
    var above = [Brought](repeating: brought, count: Limits.objectLevels + 1)
    var rest = objects[...]
    for level in above.indices.reversed() {
      while let next = rest.first, next.body.level > level {
        brought.add(next)
        rest = rest.dropFirst()
      }
      above[level] = brought
    }
    for level in above.indices {
      fill(with: above[level], words, odd, author)
      self.level = UInt8(level)
      if size(author) <= author.levelBytes << level { return }
    }
  }

  /// The stores of which this device puts everything: an object has this device's vector and another
  /// digest, and no object from nothing that was seen later, or put since, has both of this device.
  ///
  /// One that was seen earlier does not count: the author of the odd object had it, and still has
  /// another state. An odd object that no listing showed is this device's own, of a state that it had
  /// before: it is no later than any. A device that refuses an author has another state for good, as
  /// others may.
  private static func odd(
    _ objects: [CarrierObjects.Counted], _ reader: CarrierReader
  ) -> Set<StoreIdentifier> {
    var (odd, matching): ([StoreIdentifier: UInt64], [StoreIdentifier: UInt64]) = ([:], [:])
    for object in objects {
      for part in object.parts {
        if reader.isOdd(part), reader.stores[part.store]?.refused.isEmpty == true {
          odd[part.store] = max(odd[part.store] ?? 0, object.seenSince ?? 0)
        } else if part.isFromNothing, reader.stores[part.store]?.matches(part) == true {
          matching[part.store] = max(matching[part.store] ?? 0, object.seenSince ?? .max)
        }
      }
    }
    return Set(
      odd.filter { store, since in
        matching[store].map { $0 != .max && $0 <= since } ?? true
      }.keys)
  }

  private mutating func fill(
    with brought: Brought, _ words: [Word], _ odd: Set<StoreIdentifier>,
    _ author: ObjectAuthor
  ) {
    let reader = author.reader
    shares = []
    for (store, own) in reader.stores.sorted(by: { $0.key < $1.key }) where !own.vector.isEmpty {
      var share = Deposit.Share(store: store, above: [:], policy: own.policy)
      if !odd.contains(store) {
        guard !brought.coversAll(of: store) else {
          guard !brought.hasState(of: store, isBelow: own.horizon.isBelow) else { continue }
          share.above = own.vector
          shares.append(share)
          continue
        }
        for (chain, sequence) in brought.vectors[store] ?? [:] {
          share.above[chain] = own.vector[chain].map { min($0, sequence) }
        }
      }
      shares.append(share)
    }
    self.words = words.filter { brought.lacks($0, of: reader) }
    hasRecords = !brought.hasRecords
  }

  /// About how many bytes it takes.
  private func size(_ author: ObjectAuthor) -> Int {
    let data = shares.reduce(SealedObject.overhead + 100) { sum, share in
      let chains = share.above.count + (author.reader.stores[share.store]?.vector.count ?? 0)
      return sum + 300 + 48 * chains + author.bytes(of: share)
    }
    let wordBytes = WordGroup.groups(of: words).reduce(0) { $0 + $1.sizeBound }
    return data + wordBytes + (hasRecords ? author.recordBytes : 0)
  }
}

extension Brought {
  /// Whether no object has a member's word as late.
  fileprivate func lacks(_ word: Word, of reader: CarrierReader) -> Bool {
    reader.roster.isMember(word.device)
      && wordVersions[word.device.shortName].map { $0 < word.version } ?? true
  }
}
