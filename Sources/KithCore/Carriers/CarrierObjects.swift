internal import KithCrypto

/// The objects of a carrier as this device knows them, and what follows from them. An object counts
/// as listed until listings lacked it for an hour: they may be old.
struct CarrierObjects: Sendable {
  private(set) var known: [ObjectName: KnownObject] = [:]
  private var unsaved: Set<ObjectName> = []
  /// Parcels that vanished although nothing replaced them.
  private(set) var vanished = 0

  subscript(name: ObjectName) -> KnownObject? {
    get { known[name] }
    set {
      guard known[name] != newValue else { return }
      known[name] = newValue
      unsaved.insert(name)
    }
  }

  mutating func restore(_ name: ObjectName, _ object: KnownObject) { known[name] = object }

  mutating func forgetAll() {
    unsaved.formUnion(known.keys)
    known = [:]
  }

  /// The mutations that store what changed.
  mutating func save(of carrier: CarrierID) -> [Mutation] {
    defer { unsaved = [] }
    return unsaved.sorted().map { name in
      known[name].map { .putObject(carrier, name, $0.encoded()) } ?? .removeObject(carrier, name)
    }
  }

  // MARK: Listings

  /// Compares with a listing, and forgets what was missing for an hour.
  mutating func compare(with listing: [ObjectName: Int], _ reader: CarrierReader) {
    let now = reader.now.wallMilliseconds
    let replaced = Set(known.values.lazy.compactMap(\.parcel).flatMap(\.replaces))
    for (name, object) in known {
      self[name]?.setBack(to: now)
      if listing[name] == object.bytes {
        self[name]?.missingSince = nil
        self[name]?.isSeen = true
      } else if listing[name] != nil, !object.isOpened {
        // It was being written.
        self[name]?.bytes = listing[name] ?? 0
        self[name]?.missingSince = nil
      } else if let since = self[name]?.missingSince {
        guard Self.isAnHour(since, now) else { continue }
        if object.parcel != nil, object.epoch == reader.epoch?.id, !replaced.contains(name) {
          vanished += 1
        }
        self[name] = nil
      } else {
        self[name]?.missingSince = now
      }
    }
  }

  /// Notes the listed names that belong to an epoch. Returns how many do not.
  mutating func meet(_ listing: [ObjectName: Int], _ reader: CarrierReader) -> Int {
    var others = 0
    for (name, bytes) in listing where known[name] == nil {
      guard let origin = name.origin(among: reader.epochs) else {
        others += 1
        continue
      }
      // No device makes one so large.
      let isTooLarge = bytes > Limits.objectBytes
      self[name] = KnownObject(
        state: isTooLarge ? .unreadable(since: reader.now.wallMilliseconds) : .unread,
        epoch: origin.epoch.id, bytes: bytes,
        firstSeen: reader.now.wallMilliseconds, isSeen: true)
    }
    return others
  }

  static func isAnHour(_ since: UInt64, _ now: UInt64) -> Bool {
    now >= since && now - since >= Limits.carrierHourMilliseconds
  }

  // MARK: Readers

  /// The parcels that count: taken in, under the newest epoch, by members, with all parts. In the same
  /// order on each run.
  func counting(
    for reader: CarrierReader, onlySeen: Bool = false, without left: [ObjectName] = []
  ) -> [Parcel] {
    let left = Set(left)
    var parts: [Group: Set<Int>] = [:]
    var parcels: [Parcel] = []
    for (name, object) in known where !left.contains(name) {
      // What this device could not take in, another may not be able to either.
      guard case .counted(let parcel) = object.state, object.epoch == reader.epoch?.id,
        reader.roster.isMember(parcel.author),
        !onlySeen || object.isThere
      else { continue }
      parts[Group(parcel), default: []].insert(parcel.part.index)
      if parcel.part.isLast { parcels.append(parcel) }
    }
    return parcels.filter { parts[Group($0)]?.count == $0.part.index + 1 }.sorted {
      ($0.clock, $0.author, $0.part.group) < ($1.clock, $1.author, $1.part.group)
    }
  }

  private struct Group: Hashable {
    var author: DeviceID
    var group: UInt64

    init(_ parcel: Parcel) { (author, group) = (parcel.author, parcel.part.group) }
  }

  /// Whether all earlier parts of a parcel's batch were taken in. One of which a store was left out
  /// for its limits, and would not be now, was not.
  func hasEarlierParts(of parcel: Parcel, for reader: CarrierReader) -> Bool {
    guard parcel.part.isLast, parcel.part.index > 0 else { return true }
    let circumstances = reader.circumstances
    let taken = earlierParts(of: parcel).filter { [nil, circumstances].contains($0.heldBack) }
    return Set(taken.compactMap(\.parcel?.part.index)).count == parcel.part.index
  }

  func earlierParts(of parcel: Parcel) -> [KnownObject] {
    guard parcel.part.isLast, parcel.part.index > 0 else { return [] }
    return known.values.filter { object in
      guard case .counted(let other) = object.state else { return false }
      return Group(other) == Group(parcel) && other.part.index < parcel.part.index
    }
  }

  /// Returns the vectors that a device covers with these parcels if it starts from nothing.
  ///
  /// A parcel counts whole or not at all, as for its readers: two parcels may each be above the other
  /// in one of two stores, if what they were above at first was lost.
  ///
  /// - Complexity: O(*n* · *c*) in the parcels and their chains if each comes after what it is above;
  ///   at most ``Limits/carrierPasses`` times as much.
  static func reached(
    with parcels: [Parcel], _ reader: CarrierReader
  ) -> [StoreIdentifier: [ChainID: UInt64]] {
    var reached: [StoreIdentifier: [ChainID: UInt64]] = [:]
    var left = parcels.map { parcel in
      parcel.stores.filter { reader.stores[$0.have.store].map(\.policy) == $0.have.policy }
    }
    for _ in 0..<Limits.carrierPasses where !left.isEmpty {
      let before = left.count
      left.removeAll { stores in
        let isReached = stores.allSatisfy { store in
          let identifier = store.have.store
          return CarrierReader.contains(
            store.above, in: reached[identifier] ?? [:],
            except: { reader.isIgnored($0, in: identifier) })
        }
        guard isReached else { return false }
        for store in stores {
          reached[store.have.store, default: [:]].merge(
            store.have.vector, uniquingKeysWith: max)
        }
        return true
      }
      if left.count == before { break }
    }
    return reached
  }

  // MARK: Folds and deletions

  /// Parcels whose content this device has, so that it can put it again.
  func replaceable(by reader: CarrierReader) -> [ObjectName] {
    known.filter { isReplaceable($0.value, by: reader) }.keys.sorted()
  }

  func groupCount(of names: [ObjectName]) -> Int {
    Set(names.lazy.compactMap { known[$0]?.parcel }.map(Group.init)).count
  }

  private func isReplaceable(_ object: KnownObject, by reader: CarrierReader) -> Bool {
    guard case .counted(let parcel) = object.state else { return false }
    return reader.roster.isRevoked(parcel.author)
      || parcel.stores.allSatisfy { reader.covers($0.have.vector, of: $0.have.store) }
  }

  /// Objects to delete: replaced by a fold, or of an older epoch, each an hour after this device first
  /// saw what makes them unneeded; and what did not open for an hour.
  ///
  /// Delete those that opened only if the others ``reachAll(without:_:)``.
  func deletable(by reader: CarrierReader) -> [ObjectName] {
    let now = reader.now.wallMilliseconds
    var names: Set<ObjectName> = []
    for (name, object) in known where object.missingSince == nil {
      switch object.state {
      case .unreadable(let since): if Self.isAnHour(since, now) { names.insert(name) }
      case .counted(let parcel):
        let isOld = Self.isAnHour(object.firstSeen, now) && isReplaceable(object, by: reader)
        if isOld, object.epoch != reader.epoch?.id || reader.roster.isRevoked(parcel.author) {
          names.insert(name)
        } else if isOld, reader.roster.isMember(parcel.author), object.isSeen {
          for other in parcel.replaces where other != name {
            if known[other].map({ isReplaceable($0, by: reader) }) == true { names.insert(other) }
          }
        }
      case .handover, .unread, .waiting: break
      }
    }
    return names.union(superfluousHandovers(reader)).filter { known[$0]?.missingSince == nil }
      .sorted()
  }

  /// Whether a listing showed objects, besides these, that bring all that this device covers, and
  /// handovers by which each member opens them. So an object that a fold names falsely is put again
  /// before it is deleted.
  func reachAll(without names: [ObjectName], _ reader: CarrierReader) -> Bool {
    guard reader.olderEpochs.allSatisfy({ bestHandover(from: $0, reader) != nil }) else {
      return false
    }
    let reached = Self.reached(
      with: counting(for: reader, onlySeen: true, without: names), reader)
    return reader.stores.allSatisfy { store, own in
      CarrierReader.contains(own.vector, in: reached[store] ?? [:], except: { _ in false })
    }
  }

  // MARK: Handovers

  /// The older epochs that no handover leads from to the newest one, for all members.
  func epochsWithoutHandover(_ reader: CarrierReader) -> [EpochKeys] {
    reader.olderEpochs.filter { handovers(from: $0, reader).isEmpty }
  }

  private func superfluousHandovers(_ reader: CarrierReader) -> [ObjectName] {
    reader.olderEpochs.flatMap { epoch -> [ObjectName] in
      guard let best = bestHandover(from: epoch, reader) else { return [] }
      return known.filter { name, object in
        if case .handover = object.state { object.epoch == epoch.id && name != best } else { false }
      }.keys.sorted()
    }
  }

  /// The one to keep: the first that is there.
  private func bestHandover(from epoch: EpochKeys, _ reader: CarrierReader) -> ObjectName? {
    handovers(from: epoch, reader).first { known[$0]?.isThere == true }
  }

  private func handovers(from epoch: EpochKeys, _ reader: CarrierReader) -> [ObjectName] {
    let members = Set(reader.roster.sortedMembers.map(\.device))
    return known.filter { _, object in
      guard object.epoch == epoch.id, case .handover(let parcel, let newest) = object.state
      else { return false }
      return newest == reader.epoch?.id && reader.roster.isMember(parcel.author)
        && members.isSubset(of: parcel.recipients)
    }.keys.sorted()
  }
}

extension CarrierReader {
  /// The epochs from which handovers lead to the newest.
  var olderEpochs: [EpochKeys] {
    guard let epoch else { return [] }
    return Array(epochs.filter { $0.id != epoch.id }.prefix(Limits.carrierHandovers))
  }
}
