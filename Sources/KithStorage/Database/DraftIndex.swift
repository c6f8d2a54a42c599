import KithCore

/// The rows of drafts, and the place of the clock.
///
/// The clock is the latest reading in the counter row and the drafts' rows, each of which holds its
/// commit's clock. So a commit with a draft writes the counter row only if nothing else holds the
/// latest reading.
struct DraftIndex {
  struct Key: Hashable {
    var store: Int64
    var ordinal: UInt64
  }

  struct Slot {
    var id: Int64
    var clock: HybridTime
  }

  private var slots: [Key: Slot] = [:]
  private(set) var lastRow: Int64 = 0
  /// The clock that loading finds once ``isClockKept``.
  private(set) var clock = HybridTime.zero
  /// Never later than ``clock`` after a commit.
  private(set) var counterClock = HybridTime.zero
  /// The number of drafts' rows with ``clock``.
  private var holders = 0

  /// Whether loading would give ``clock``.
  var isClockKept: Bool { counterClock == clock || holders > 0 }

  subscript(key: Key) -> Int64? { slots[key]?.id }

  /// A later clock in the row raises the clock.
  mutating func insert(_ slot: Slot, for key: Key) {
    raiseClock(to: slot.clock)
    _ = remove(key)
    slots[key] = slot
    lastRow = max(lastRow, slot.id)
    if slot.clock == clock { holders += 1 }
  }

  /// Returns the draft's row.
  mutating func remove(_ key: Key) -> Int64? {
    guard let slot = slots.removeValue(forKey: key) else { return nil }
    if slot.clock == clock { holders -= 1 }
    return slot.id
  }

  mutating func raiseClock(to time: HybridTime) {
    guard time > clock else { return }
    clock = time
    holders = 0
  }

  /// The counter row holds the clock now.
  mutating func noteCounter() { counterClock = clock }

  /// Clears the clocks in drafts' rows; the counter row must be written.
  ///
  /// - Complexity: O(*n*) in the drafts.
  mutating func setClockBack(to time: HybridTime) {
    for key in slots.keys { slots[key]?.clock = .zero }
    clock = time
    holders = time == .zero ? slots.count : 0
  }
}
