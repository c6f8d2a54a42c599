internal import KithCrypto

/// The location of an entry's sealed form: its change set, and its index there.
struct EntryLocation: Hashable {
  var changeSet: ChangeSetReference
  var index: UInt32
}

/// An entry of the state, immutable and shared, so that states are cheap to copy.
final class KeptEntry: Sendable {
  let entry: Entry
  let digest: Digest256
  /// Nil for a draft, which has no sealed form yet.
  let location: EntryLocation?

  init(entry: Entry, digest: Digest256, location: EntryLocation?) {
    self.entry = entry
    self.digest = digest
    self.location = location
  }

  /// Returns whether `right` supersedes `left`: it has the later stamp.
  ///
  /// After copied directories stamps may be equal: then a removal wins, then the later `replaced`,
  /// then the larger digest (`Docs/Protocol.md`, "Merging").
  static func isOlder(_ left: KeptEntry, than right: KeptEntry) -> Bool {
    if left.entry.stamp != right.entry.stamp { return left.entry.stamp < right.entry.stamp }
    if left.entry.isRemoval != right.entry.isRemoval { return right.entry.isRemoval }
    if left.entry.replaced != right.entry.replaced {
      guard let mine = left.entry.replaced else { return true }
      guard let theirs = right.entry.replaced else { return false }
      return mine < theirs
    }
    return left.digest < right.digest
  }
}

/// The kept entries of one key. The runner-up is kept while the newest is a value written without
/// knowing it (`Docs/Protocol.md`, "Merging").
struct Slot {
  private(set) var newest: KeptEntry
  private(set) var runnerUp: KeptEntry?

  init(_ entry: KeptEntry) {
    newest = entry
  }

  enum Outcome {
    case known
    case superseded
    case kept(dropped: [KeptEntry])
  }

  /// Merges an entry of the same key: commutative, associative and idempotent.
  mutating func merge(_ entry: KeptEntry) -> Outcome {
    if entry.digest == newest.digest || entry.digest == runnerUp?.digest { return .known }
    var dropped: [KeptEntry] = []
    if KeptEntry.isOlder(newest, than: entry) {
      if let runnerUp { dropped.append(runnerUp) }
      runnerUp = newest
      newest = entry
    } else if let second = runnerUp {
      guard KeptEntry.isOlder(second, than: entry) else { return .superseded }
      dropped.append(second)
      runnerUp = entry
    } else {
      runnerUp = entry
    }
    if let second = runnerUp, !keeps(runnerUp: second) {
      runnerUp = nil
      if second.digest == entry.digest { return .superseded }
      dropped.append(second)
    }
    return .kept(dropped: dropped)
  }

  private func keeps(runnerUp: KeptEntry) -> Bool {
    guard !newest.entry.isRemoval else { return false }
    guard let replaced = newest.entry.replaced else { return true }
    return replaced < runnerUp.entry.stamp
  }

  /// Replaces the location of a kept entry. Returns the former one, or nil if the entry is not
  /// kept.
  mutating func relocate(_ digest: Digest256, to location: EntryLocation) -> EntryLocation? {
    if newest.digest == digest {
      defer { newest = KeptEntry(entry: newest.entry, digest: digest, location: location) }
      return newest.location
    }
    guard let second = runnerUp, second.digest == digest else { return nil }
    runnerUp = KeptEntry(entry: second.entry, digest: digest, location: location)
    return second.location
  }

  var kept: [KeptEntry] { runnerUp.map { [newest, $0] } ?? [newest] }
}
