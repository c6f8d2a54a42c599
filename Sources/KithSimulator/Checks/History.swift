internal import KithCore
internal import KithCrypto

/// The writes of programs; checks promises 3 and 5.
struct History {
  struct Write {
    var device: DeviceNumber
    var author: DeviceID
    var store: StoreIdentifier
    /// Nil if the write changed nothing.
    var clock: HybridTime?
    /// Other clocks that the write may have: a copy of the directory, or a stored draft, was
    /// stamped again.
    var copied: [HybridTime] = []
    var operations: [Operation]
    var isDurable = false
    /// Whether its device's directory was given up: perhaps no other device had it.
    var isAtRisk = false
    /// The later writes of its device that replaced its drafts.
    var replacements: [Key: WriteID] = [:]

    /// Whether a refusal has one of its values, which no other write has: the draft may have been
    /// stamped again as it was refused.
    func isNamed(by refusal: Refusal) -> Bool {
      operations.contains { $0.value != nil && refusal.operations.contains($0) }
    }
  }

  private(set) var writes: [WriteID: Write] = [:]
  private(set) var order: [WriteID] = []

  mutating func accept(_ id: WriteID, _ write: Write) {
    writes[id] = write
    order.append(id)
  }

  /// Notes that an accepted write replaces its device's drafts of the same keys. Returns why, if it
  /// replaces others too (`Docs/Protocol/drafts.md`).
  mutating func replaceDrafts(
    by id: WriteID, _ draft: LocalWrite, on device: DeviceNumber, in store: StoreIdentifier,
    from before: StoreInspection, to after: StoreInspection
  ) -> String? {
    let written = Set(draft.operations.map { Key($0.key) })
    for old in before.drafts {
      let rest = old.operations.filter { !written.contains(Key($0.key)) }
      let kept = after.drafts.first { $0.clock == old.clock }?.operations ?? []
      guard kept == rest else {
        return "device \(device) forgot a draft at \(old.clock) that no write replaced"
      }
      for earlier in order where rest.count < old.operations.count {
        guard let write = writes[earlier], write.device == device, write.store == store,
          write.clock == old.clock || write.copied.contains(old.clock)
        else { continue }
        for gone in old.operations where !rest.contains(gone) && write.operations.contains(gone) {
          writes[earlier]?.replacements[Key(gone.key)] = id
        }
      }
    }
    return nil
  }

  /// A device stamped drafts again.
  mutating func restamp(
    on device: DeviceNumber, author: DeviceID, in store: StoreIdentifier,
    _ pairs: [(old: HybridTime, new: HybridTime)]
  ) {
    let moved = pairs.filter { $0.old != $0.new }
    for id in order {
      guard let write = writes[id], write.author == author, write.store == store,
        let clock = write.clock
      else { continue }
      for given in [clock] + write.copied {
        guard let new = moved.first(where: { $0.old == given })?.new else { continue }
        // A copy only gave the write one more possible stamp: its directory may be given up
        // before anybody has seen it.
        if write.device == device, given == clock {
          writes[id]?.clock = new
          // After a failed commit the disk still has the old stamp.
          if !write.copied.contains(clock) { writes[id]?.copied.append(clock) }
        } else {
          writes[id]?.copied.append(new)
        }
      }
    }
  }

  mutating func makeDurable(_ id: WriteID) { writes[id]?.isDurable = true }

  /// A directory is given up: data that no remaining device ever covered may be lost.
  mutating func putAtRisk(on device: DeviceNumber) {
    for id in order where writes[id]?.device == device { writes[id]?.isAtRisk = true }
  }

  /// Whether a program removed a key later: devices may have forgotten that before others saw it. With
  /// a stamp of its own, too: the disk may have lost the clock of the value.
  func removes(_ key: Key, after stamp: Stamp, in store: StoreIdentifier) -> Bool {
    writes.values.contains { write in
      guard write.store == store,
        write.operations.contains(where: { Key($0.key) == key && $0.value == nil })
      else { return false }
      return ([write.clock].compactMap(\.self) + write.copied).contains {
        Stamp(clock: $0, device: write.author) >= stamp
      }
    }
  }

  /// Returns why an acknowledged write is lost. It is not lost if one of these holds in the end:
  /// - It is its key's newest entry, shown or hidden.
  /// - A later stamp superseded it. Removals are forgotten under a limit: then `isForgotten` says
  ///   whether one did.
  /// - Its program was told that it was refused.
  /// - Its directory was given up, and it is not certainly covered.
  /// - A later write replaced it as a draft, and that one is not lost.
  func loss(
    in states: [StoreIdentifier: [StoreInspection]],
    seenRefusals: (DeviceNumber, StoreIdentifier) -> [Refusal],
    isCovered: (Stamp, Operation, StoreIdentifier) -> Bool,
    isForgotten: ((Stamp, Key, StoreIdentifier) -> Bool)?
  ) -> String? {
    for id in order {
      guard let write = writes[id], write.isDurable, let clock = write.clock,
        let seen = states[write.store]
      else { continue }
      let refusals = seenRefusals(write.device, write.store)
      for operation in write.operations {
        // A device that is alone in the end has drafts.
        let key = Key(operation.key)
        // Removals are not in the digest: a fork's may be on some devices only, and of two of one key
        // either may stay.
        let newest = seen.compactMap { $0.drafted[key] ?? $0.slots[key]?.first?.entry }
          .max { $0.stamp < $1.stamp }
        if let newest, newest.isRemoval, operation.value == nil { continue }
        // Whether a removed key returned is for the merge to say.
        if isForgotten != nil, operation.value == nil { continue }
        let isAccounted = replacing(write, of: key).contains { write, operation in
          ([write.clock].compactMap(\.self) + write.copied).contains { clock in
            let stamp = Stamp(clock: clock, device: write.author)
            // A copy of the directory may have given the stamp to another write.
            if let isForgotten {
              if isForgotten(stamp, key, write.store) { return true }
              // A removal with the write's own stamp may only repeat one that was forgotten.
              if let newest, newest.stamp > stamp || newest.stamp == stamp && !newest.isRemoval {
                return true
              }
            } else if let newest, newest.stamp >= stamp {
              return true
            }
            let isReported = refusals.contains { refusal in
              (refusal.clock == clock || write.isNamed(by: refusal))
                && refusal.operations.contains(operation)
            }
            return isReported || write.isAtRisk && !isCovered(stamp, operation, write.store)
          }
        }
        if isAccounted { continue }
        return "device \(write.device)'s write \(id.rawValue) of \(operation.key) at \(clock) is "
          + "neither the newest nor superseded nor refused: the newest is of "
          + "\(newest.map { "\($0.stamp.clock)" } ?? "no entry")"
      }
    }
    return nil
  }

  /// A write, and those that replaced it as a draft one after another, with what each did to the
  /// key.
  private func replacing(_ write: Write, of key: Key) -> [(Write, Operation)] {
    var found: [(Write, Operation)] = []
    var next: Write? = write
    while let write = next {
      if let operation = write.operations.first(where: { Key($0.key) == key }) {
        found.append((write, operation))
      }
      next = write.replacements[key].flatMap { writes[$0] }
    }
    return found
  }
}
