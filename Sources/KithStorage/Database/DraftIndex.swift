import KithCore

/// The rows of drafts, and the place of the clock.
///
/// The clock is the latest of its own row, the counter row, and of every draft's row, which holds
/// the clock of its commit. So a commit that writes a draft writes the counter row only if nothing
/// else holds the latest reading.
struct DraftIndex {
  struct Key: Hashable {
    var store: Int64
    var ordinal: UInt64
  }

  struct Slot {
    var id: Int64
    /// The clock in it.
    var clock: HybridTime
  }

  private var slots: [Key: Slot] = [:]
  /// The highest used row id.
  private(set) var lastRow: Int64 = 0
  /// The clock as loading finds it once ``isClockKept``.
  private(set) var clock = HybridTime.zero
  /// The counter row's clock, never later than ``clock`` after a commit.
  private(set) var counterClock = HybridTime.zero
  /// How many drafts' rows hold ``clock``.
  private var holders = 0

  /// Whether loading would give ``clock``.
  var isClockKept: Bool { counterClock == clock || holders > 0 }

  subscript(key: Key) -> Int64? { slots[key]?.id }

  /// Records a draft's row, whose later clock raises the clock.
  mutating func insert(_ slot: Slot, for key: Key) {
    raiseClock(to: slot.clock)
    _ = remove(key)
    slots[key] = slot
    lastRow = max(lastRow, slot.id)
    if slot.clock == clock { holders += 1 }
  }

  /// Forgets a draft, and returns its row.
  mutating func remove(_ key: Key) -> Int64? {
    guard let slot = slots.removeValue(forKey: key) else { return nil }
    if slot.clock == clock { holders -= 1 }
    return slot.id
  }

  /// Raises the clock; it is kept once a row holds it.
  mutating func raiseClock(to time: HybridTime) {
    guard time > clock else { return }
    clock = time
    holders = 0
  }

  /// Records that the counter row holds the clock.
  mutating func noteCounter() { counterClock = clock }

  /// Sets the clock back: no draft's row holds one any more, and the counter row must be written.
  ///
  /// - Complexity: O(*n*) in the drafts.
  mutating func setClockBack(to time: HybridTime) {
    for key in slots.keys { slots[key]?.clock = .zero }
    clock = time
    holders = time == .zero ? slots.count : 0
  }
}
