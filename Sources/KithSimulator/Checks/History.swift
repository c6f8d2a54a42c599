internal import KithCore
internal import KithCrypto

/// The writes of programs, and their promises: checks promises 3 and 5.
struct History {
  /// One accepted transaction.
  struct Write {
    var device: DeviceNumber
    var author: DeviceID
    var store: StoreIdentifier
    /// The clock of its stamp; nil if it changed nothing.
    var clock: HybridTime?
    /// The clocks that copies of its device's directory gave it when their clock was set back.
    var copied: [HybridTime] = []
    var operations: [Operation]
    var isDurable = false
    /// Whether a directory was given up that may have been the only one to hold it.
    var isAtRisk = false
    /// Whether one or several later writes of its device replaced it among the drafts.
    var hasMadeWay = false
  }

  private(set) var writes: [WriteID: Write] = [:]
  private(set) var order: [WriteID] = []

  mutating func accept(_ id: WriteID, _ write: Write) {
    writes[id] = write
    order.append(id)
  }

  /// A write was accepted: it may replace drafts of its device. Returns why one must not be
  /// replaced.
  ///
  /// It replaces the draft of its one key, if it is no larger; with as many drafts as a device
  /// keeps, also those of which later ones write every key
  /// (`Docs/Decisions/drafts-and-first-sync.md`, 9).
  mutating func makeWay(
    for draft: StoreInspection.Draft, on device: DeviceNumber, in store: StoreIdentifier,
    from before: StoreInspection, to after: StoreInspection
  ) -> String? {
    let kept = Set(after.drafts.map(\.clock))
    let gone = before.drafts.filter { !kept.contains($0.clock) }
    guard !gone.isEmpty else { return nil }
    let room = 8 * (before.policy.totalBytes + 256 * before.policy.keys)
    let isCrowded =
      before.drafts.count >= 4_096 || before.draftBytes + Self.keptBytes(draft.operations) > room
    let written = Set(after.drafts.flatMap { $0.operations.map { Key($0.key) } })
    for old in gone {
      let isCovered =
        draft.operations.count == 1 && old.operations.count == 1
        && Self.covers(draft.operations[0], old.operations[0])
      let isRewritten = old.operations.allSatisfy { written.contains(Key($0.key)) }
      guard isCovered || isCrowded && isRewritten else {
        return "device \(device) forgot a draft at \(old.clock) for one that does not replace it"
      }
      for id in order {
        guard let write = writes[id], write.device == device, write.store == store,
          write.clock == old.clock, write.operations == old.operations
        else { continue }
        writes[id]?.hasMadeWay = true
      }
    }
    return nil
  }

  /// The size of operations as a draft, in bytes.
  private static func keptBytes(_ operations: [Operation]) -> Int {
    operations.reduce(256) { $0 + $1.key.utf8.count + ($1.value?.size ?? 0) + 256 }
  }

  /// A device stamped drafts again: clocks before and after, in order. A write that one of them
  /// replaced follows the first later one.
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
        let new =
          moved.first { $0.old == given }?.new
          ?? (write.hasMadeWay ? moved.first { $0.old > given && $0.new < given }?.new : nil)
        guard let new else { continue }
        // A copy's directory may be given up unheard: it only gave the write one more possible
        // stamp.
        if write.device == device, given == clock {
          writes[id]?.clock = new
          // After a failed commit the device has the stamp on its disk.
          if !write.copied.contains(clock) { writes[id]?.copied.append(clock) }
        } else {
          writes[id]?.copied.append(new)
        }
      }
    }
  }

  mutating func makeDurable(_ id: WriteID) { writes[id]?.isDurable = true }

  /// A device's directory is given up: data that no remaining device ever covered may be lost.
  mutating func putAtRisk(on device: DeviceNumber) {
    for id in order where writes[id]?.device == device { writes[id]?.isAtRisk = true }
  }

  /// Returns why an acknowledged write is lost. In the end it must be its key's newest entry, shown
  /// or hidden, or superseded by a later stamp, or its program was told that it, or a write that
  /// replaced it, was refused.
  func loss(
    in states: [StoreIdentifier: StoreInspection],
    told: (DeviceNumber, StoreIdentifier) -> [Refusal],
    isCovered: (Stamp, Key, StoreIdentifier) -> Bool
  ) -> String? {
    for id in order {
      guard let write = writes[id], write.isDurable, let clock = write.clock,
        let state = states[write.store]
      else { continue }
      let refusals = told(write.device, write.store)
      for operation in write.operations {
        // A device that is alone in the end has drafts.
        let key = Key(operation.key)
        let newest = state.drafted[key] ?? state.slots[key]?.first?.entry
        // Removals are not in the digest: of a fork's two removals of one key either may stay,
        // until another write.
        if let newest, newest.isRemoval, operation.value == nil { continue }
        let isAccounted = ([clock] + write.copied).contains { clock in
          let stamp = Stamp(clock: clock, device: write.author)
          // A copy of the directory may have given the stamp to another write.
          if let newest, newest.stamp >= stamp { return true }
          let isTold = refusals.contains { refusal in
            refusal.clock == clock && refusal.operations.contains(operation)
              || write.hasMadeWay && refusal.clock >= clock
                && refusal.operations.contains { Key($0.key) == key }
          }
          return isTold || write.isAtRisk && !isCovered(stamp, key, write.store)
        }
        if isAccounted { continue }
        return "device \(write.device)'s write \(id.rawValue) of \(operation.key) at \(clock) is "
          + "neither the newest nor superseded nor refused: the newest is of "
          + "\(newest.map { "\($0.stamp.clock)" } ?? "no entry")"
      }
    }
    return nil
  }

  /// Whether a draft of `later` replaced one of `earlier`.
  private static func covers(_ later: Operation, _ earlier: Operation) -> Bool {
    later.key == earlier.key
      && (later.value == nil || later.value?.size ?? 0 <= earlier.value?.size ?? -1)
  }
}
