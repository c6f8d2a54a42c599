import KithCore

/// Where the rows of drafts are, and where the clock is kept.
///
/// The clock has a row of its own, the counter row, but every draft's row also holds the clock as
/// of the commit that wrote it; the clock is the latest of them all. So a commit that writes a
/// draft touches the counter row only if it must: when nothing else holds the latest reading.
struct DraftIndex {
  /// A draft of one store.
  struct Key: Hashable {
    var store: Int64
    var ordinal: UInt64
  }

  /// A draft's row.
  struct Slot {
    var id: Int64
    /// The clock in it.
    var clock: HybridTime
  }

  private var slots: [Key: Slot] = [:]
  /// The highest row id given out.
  private(set) var lastRow: Int64 = 0
  /// The clock, as whoever loads the database finds it once ``isClockKept``.
  private(set) var clock = HybridTime.zero
  /// What the counter row holds: never later than ``clock`` when a commit ends.
  private(set) var counterClock = HybridTime.zero
  /// How many drafts' rows hold ``clock``.
  private var holders = 0

  /// Whether what is kept gives ``clock`` when it is loaded.
  var isClockKept: Bool { counterClock == clock || holders > 0 }

  /// Where a draft is.
  subscript(key: Key) -> Int64? { slots[key]?.id }

  /// Notes a draft's row. One that holds a later clock raises the clock.
  mutating func insert(_ slot: Slot, for key: Key) {
    raiseClock(to: slot.clock)
    _ = remove(key)
    slots[key] = slot
    lastRow = max(lastRow, slot.id)
    if slot.clock == clock { holders += 1 }
  }

  /// Forgets a draft, and gives the row that it had.
  mutating func remove(_ key: Key) -> Int64? {
    guard let slot = slots.removeValue(forKey: key) else { return nil }
    if slot.clock == clock { holders -= 1 }
    return slot.id
  }

  /// Raises the clock; it is kept once a draft's row or the counter row holds it.
  mutating func raiseClock(to time: HybridTime) {
    guard time > clock else { return }
    clock = time
    holders = 0
  }

  /// The counter row holds the clock now.
  mutating func noteCounter() { counterClock = clock }

  /// Sets the clock back: no draft's row holds one any more, and the counter row is yet to be
  /// written.
  ///
  /// - Complexity: O(*n*) in the drafts.
  mutating func setClockBack(to time: HybridTime) {
    for key in slots.keys { slots[key]?.clock = .zero }
    clock = time
    holders = time == .zero ? slots.count : 0
  }
}
