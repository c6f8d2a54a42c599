internal import KithCore
internal import KithCrypto

/// Every entry ever published, and from these the merge of a device's coverage (`Docs/Protocol.md`,
/// "Merging").
struct ReferenceMerge {
  private struct Published {
    var entry: Entry
    var digest: Digest256
    var chain: ChainID
    var sequence: UInt64
    var changeSet: ChangeSetReference
    /// Counts published entries as they are first kept: later ones have a larger number, whatever
    /// their clocks say.
    var order: Int
    /// Devices that kept it and still have their directory.
    var holders: Set<DeviceNumber>
    /// Whether a device kept it beyond its coverage.
    var wasBeyond: Bool
  }

  private struct Location: Hashable {
    var changeSet: ChangeSetReference
    var index: UInt32
  }

  private var count = 0
  private var published: [StoreIdentifier: [Key: [Location: Published]]] = [:]
  /// Each store counts its own chains.
  private struct Position: Hashable {
    var store: StoreIdentifier
    var chain: ChainID
    var sequence: UInt64
  }

  /// Several change sets of one position are a fork.
  private var changeSets: [Position: Set<Digest256>] = [:]

  /// Records a change set even if no device keeps it: another one of its sequence is still the
  /// other side of a fork.
  mutating func note(_ changeSet: ChangeSetHeaderFacts, in store: StoreIdentifier) {
    let sequence = changeSet.reference.sequence
    changeSets[Position(store: store, chain: changeSet.chain, sequence: sequence), default: []]
      .insert(changeSet.reference.digest)
  }

  mutating func note(
    _ kept: StoreInspection.Kept, in store: StoreIdentifier, by device: DeviceNumber,
    isBeyond: Bool
  ) {
    let location = Location(changeSet: kept.changeSet, index: kept.index)
    let key = kept.entry.key
    if let known = published[store]?[key]?[location] {
      if !known.holders.contains(device) {
        published[store]?[key]?[location]?.holders.insert(device)
      }
      if isBeyond, !known.wasBeyond { published[store]?[key]?[location]?.wasBeyond = true }
      return
    }
    let chain = kept.changeSet.chain
    count += 1
    published[store, default: [:]][key, default: [:]][location] = Published(
      entry: kept.entry, digest: kept.digest, chain: chain, sequence: kept.changeSet.sequence,
      changeSet: kept.changeSet, order: count, holders: [device], wasBeyond: isBeyond)
    changeSets[
      Position(store: store, chain: chain, sequence: kept.changeSet.sequence), default: []
    ].insert(kept.changeSet.digest)
  }

  /// Forgets data that only devices with given-up directories kept. A traitor may have told others
  /// that they cover it.
  mutating func giveUp(_ device: DeviceNumber) {
    for (store, keys) in published {
      for (key, all) in keys {
        for (location, entry) in all where entry.holders.contains(device) {
          published[store]?[key]?[location]?.holders.remove(device)
          if entry.holders.count == 1 { published[store]?[key]?[location] = nil }
        }
      }
    }
  }

  /// Returns why a store is not the merge of its coverage; nil if it is. `isForgotten`, if devices
  /// forget removals, is whether a program removed a key later. Then the entry may be missing, but no
  /// value may be there whose removal was seen, unless its author lies: the clocks of its chain may
  /// hide that it is covered.
  func difference(
    _ seen: StoreInspection, in store: StoreIdentifier, liars: Set<DeviceID>,
    isForgotten: ((Stamp, Key, StoreIdentifier) -> Bool)? = nil
  ) -> String? {
    for (key, all) in published[store] ?? [:] {
      let covered = all.values.filter { $0.sequence <= seen.covered[$0.chain] ?? 0 }
      // One side of a fork may be covered and missing.
      let hasFork = all.values.contains { isFork($0, in: store) }
      // With entries beyond the coverage, a difference proves nothing.
      let hasMore = seen.slots[key]?.contains { kept in
        kept.changeSet.sequence > seen.covered[kept.changeSet.chain] ?? 0
      }
      guard !hasFork, hasMore != true else { continue }
      let wanted = Self.kept(of: isForgotten == nil ? covered : Self.written(covered))
      let found = seen.slots[key]?.map(\.digest) ?? []
      guard wanted.map(\.digest) != found else { continue }
      if let isForgotten {
        let values = Set(seen.slots[key]?.filter { !$0.entry.isRemoval }.map(\.digest) ?? [])
        let isWhole = wanted.allSatisfy {
          $0.entry.isRemoval || values.contains($0.digest)
            || isForgotten($0.entry.stamp, key, store)
        }
        // In a new change set, which nobody covered before, a value may come back: if a device that
        // never saw its removal carries it over, or publishes its draft of an old copy again. So may
        // one that was removed where it lay beyond the coverage, and comes once more; and one that a
        // device and its copy both published: who removed it may have covered only one of them.
        let returned = seen.slots[key]?.contains { kept in
          !kept.entry.isRemoval && kept.changeSet.device == kept.entry.stamp.device
            && !liars.contains(kept.changeSet.device)
            && !covered.contains {
              $0.entry.stamp == kept.entry.stamp && $0.chain != kept.changeSet.chain
            }
            && covered.contains {
              $0.changeSet == kept.changeSet && $0.digest == kept.digest && !$0.wasBeyond
                && Self.isRemoved($0, covered)
            }
        }
        if isWhole, returned != true { continue }
      }
      return "\(key): what is covered comes to \(Self.text(wanted.map(\.entry))), and "
        + "\(Self.text(seen.slots[key]?.map(\.entry) ?? [])) is kept"
    }
    return nil
  }

  private static func text(_ entries: [Entry]) -> String {
    entries.isEmpty
      ? "nothing"
      : entries.map { $0.isRemoval ? "the removal \($0.stamp.clock)" : "\($0.stamp.clock)" }
        .joined(separator: ", ")
  }

  /// Without removals that repeat forgotten ones: they have a value's own stamp.
  private static func written(_ all: [Published]) -> [Published] {
    all.filter { each in
      !each.entry.isRemoval
        || !all.contains { !$0.entry.isRemoval && $0.entry.stamp == each.entry.stamp }
    }
  }

  /// Whether the author of a removal knew a value, by what its entry and those before it replaced. If
  /// it did not, all may have forgotten the removal before they met the value: that stays. So may
  /// one in a change set that is newer than the removal, even if a clock that was far ahead stamped
  /// that.
  private static func isRemoved(_ value: Published, _ all: [Published]) -> Bool {
    written(all).contains { removal in
      removal.entry.isRemoval && value.order < removal.order
        && value.entry.stamp < removal.entry.stamp && knew(removal.entry, value.entry.stamp, all)
    }
  }

  private static func knew(_ entry: Entry, _ stamp: Stamp, _ all: [Published]) -> Bool {
    var replaced = entry.replaced
    while let known = replaced, known >= stamp {
      if known == stamp { return true }
      replaced = all.first { $0.entry.stamp == known }?.entry.replaced
    }
    return false
  }

  /// Whether a program wrote or removed the key later; or one side of a fork wrote it, of which
  /// devices may cover the other.
  func isSuperseded(_ stamp: Stamp, of key: Key, in store: StoreIdentifier) -> Bool {
    let all = (published[store]?[key] ?? [:]).values
    return Self.written(Array(all)).contains {
      $0.entry.stamp > stamp || $0.entry.stamp == stamp && isFork($0, in: store)
    }
  }

  /// Whether a device removed a value again because it took it for forgotten. It may, if a member
  /// made it believe that it covers what it never got.
  func isRemovedAgain(_ stamp: Stamp, of key: Key, in store: StoreIdentifier) -> Bool {
    (published[store]?[key] ?? [:]).values.contains {
      $0.entry.isRemoval && $0.entry.stamp == stamp
    }
  }

  /// Whether what an operation wrote with this stamp is certainly covered; of a fork perhaps only the
  /// other side is. A copy of the directory may have given a value's stamp to a removal.
  func isCovered(
    _ stamp: Stamp, _ operation: Operation, by seen: StoreInspection, in store: StoreIdentifier
  ) -> Bool {
    published[store]?[Key(operation.key)]?.values.contains {
      $0.entry.stamp == stamp && $0.entry.isRemoval == (operation.value == nil)
        && $0.sequence <= seen.covered[$0.chain] ?? 0
        && !isFork($0, in: store)
    } ?? false
  }

  private func isFork(_ entry: Published, in store: StoreIdentifier) -> Bool {
    let position = Position(store: store, chain: entry.chain, sequence: entry.sequence)
    return changeSets[position]?.count ?? 0 > 1
  }

  private static func kept(of all: [Published]) -> [Published] {
    var seen = Set<Digest256>()
    let sorted = all.sorted { isNewer($0, $1) }.filter { seen.insert($0.digest).inserted }
    guard let newest = sorted.first, sorted.count > 1, newest.entry.value != nil else {
      return Array(sorted.prefix(1))
    }
    if let replaced = newest.entry.replaced, sorted[1].entry.stamp <= replaced {
      return [newest]
    }
    return [newest, sorted[1]]
  }

  /// By stamp; then a removal wins, then the later `replaced` (none is the earliest), then the
  /// larger digest.
  private static func isNewer(_ left: Published, _ right: Published) -> Bool {
    let (mine, theirs) = (left.entry, right.entry)
    if mine.stamp.clock.rawValue != theirs.stamp.clock.rawValue {
      return mine.stamp.clock.rawValue > theirs.stamp.clock.rawValue
    }
    if mine.stamp.device != theirs.stamp.device {
      return theirs.stamp.device.bytes.lexicographicallyPrecedes(mine.stamp.device.bytes)
    }
    if (mine.value == nil) != (theirs.value == nil) { return mine.value == nil }
    if mine.replaced != theirs.replaced {
      guard let my = mine.replaced else { return false }
      guard let their = theirs.replaced else { return true }
      return my > their
    }
    return right.digest.bytes.lexicographicallyPrecedes(left.digest.bytes)
  }
}
