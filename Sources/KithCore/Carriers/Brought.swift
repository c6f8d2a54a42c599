internal import KithCrypto

/// The stores, words and records that a device with no data would have after it read some objects.
struct Brought {
  private let reader: CarrierReader
  /// The vectors that a device covers with these objects if it starts from nothing; stores are
  /// independent of each other.
  private(set) var vectors: [StoreIdentifier: [ChainID: UInt64]] = [:]
  /// Parts that are above a vector which the objects added so far do not reach.
  private var pending: [StoreIdentifier: [ObjectBody.Part]] = [:]
  /// Parts with this device's state, and whether their authors are below the horizon.
  private var matching: [StoreIdentifier: [(part: ObjectBody.Part, isBelow: Bool)]] = [:]
  /// Stores with a part that is odd (``CarrierReader/isOdd(_:)``). A device may have put its state
  /// because of that part. If that object were deleted, the device would put it again.
  private let odd: Set<StoreIdentifier>
  /// The latest versions of words, by the devices' short names.
  private(set) var wordVersions: [UInt64: Word.Version] = [:]
  private var generation: UInt8?
  /// Whether an object has this device's records.
  private(set) var hasRecords = false

  init(_ reader: CarrierReader, odd: Set<StoreIdentifier> = []) {
    self.reader = reader
    self.odd = odd
  }

  init(by objects: [CarrierObjects.Counted], _ reader: CarrierReader) {
    self.init(reader)
    for object in objects { add(object) }
  }

  /// - Complexity: O(*p* · *c*) in the parts that are pending and their chains, mostly none.
  mutating func add(_ object: CarrierObjects.Counted) {
    for part in object.parts {
      add(part)
      guard let own = reader.stores[part.store], own.matches(part) else { continue }
      // The author is below its horizon now, so its earlier object does not show a complete state.
      let isBelow = part.have.isBelow || own.below.contains(object.body.author)
      matching[part.store, default: []].append((part, isBelow))
    }
    wordVersions.merge(reader.wordVersions(in: object.body), uniquingKeysWith: max)
    generation = max(generation ?? 0, object.body.reading.generation)
    hasRecords = hasRecords || object.body.rosterDigest == reader.roster.digest
  }

  private mutating func add(_ part: ObjectBody.Part) {
    let store = part.store
    guard reader.contains(part.above, in: vectors[store] ?? [:], of: store) else {
      if pending[store]?.count ?? 0 < Limits.pendingParts {
        pending[store, default: []].append(part)
      }
      return
    }
    var ready = [part]
    while let next = ready.popLast() {
      vectors[store, default: [:]].merge(next.have.vector, uniquingKeysWith: max)
      let above = vectors[store] ?? [:]
      ready += (pending[store] ?? []).filter { reader.contains($0.above, in: above, of: store) }
      pending[store]?.removeAll { reader.contains($0.above, in: above, of: store) }
    }
  }

  /// Whether an object has this device's generation of clocks, or a later one.
  var hasGeneration: Bool { generation.map { $0 >= reader.timeKeeper.generation } ?? false }

  func covers(_ part: ObjectBody.Part) -> Bool {
    reader.contains(part.have.vector, in: vectors[part.store] ?? [:], of: part.store)
  }

  /// Whether the objects bring all that this device covers of a store.
  func coversAll(of store: StoreIdentifier) -> Bool {
    reader.isWithin(vectors[store] ?? [:], store)
  }

  /// Whether the objects hold this device's state of a store. `fromNothing`: with all its data.
  /// `isBelow`: also by an author below its horizon, whose state counts only until another device
  /// puts one.
  func hasState(of store: StoreIdentifier, fromNothing: Bool = false, isBelow: Bool) -> Bool {
    matching[store]?.contains { match in
      (match.part.isFromNothing || !fromNothing) && (!match.isBelow || isBelow)
    } == true
  }

  func hasState(of store: StoreIdentifier) -> Bool { matching[store] != nil }

  /// Whether the objects bring all that another object has. `opensForAll`: objects have the records
  /// and boxes.
  ///
  /// This device must cover it too: of a state that it cannot have, because it refuses an author,
  /// it does not know whether another device needs it.
  ///
  /// This device's own data of limits that it had before is brought under those that it has now:
  /// devices with the old ones get nothing of it in a session either.
  func bring(_ body: ObjectBody, opensForAll: Bool) -> Bool {
    let hasParts = body.parts.allSatisfy { part in
      guard let own = reader.stores[part.store],
        own.policy == part.have.policy || body.author == reader.device, covers(part),
        reader.covers(part.have.vector, of: part.store)
      else { return false }
      guard own.matches(part) else { return true }
      return !(part.isFromNothing && odd.contains(part.store))
        && hasState(of: part.store, fromNothing: part.isFromNothing, isBelow: part.have.isBelow)
    }
    let hasWords = reader.wordVersions(in: body).allSatisfy { device, version in
      wordVersions[device].map { $0 >= version } == true
    }
    let hasRecords =
      body.rosterDigest == nil
      || (body.rosterDigest == reader.roster.digest ? self.hasRecords : opensForAll)
    let isNewest = body.reading.generation >= reader.timeKeeper.generation
    return hasParts && hasWords && hasRecords && (!isNewest || hasGeneration)
  }
}

extension CarrierReader {
  /// The versions of the words in an object that count: those of members.
  fileprivate func wordVersions(in body: ObjectBody) -> [UInt64: Word.Version] {
    let members = Set(roster.sortedMembers.lazy.map(\.device.shortName))
    return body.wordVersions.filter { members.contains($0.key) }
  }
}
