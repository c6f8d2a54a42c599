/// When a carrier's next turn is due (`Docs/Protocol/carriers.md`, "Turns"). All times are
/// monotonic milliseconds.
struct CarrierSchedule: Sendable {
  /// The least time between two turns that nothing asked for.
  private let shortest: UInt64
  /// Nil while a turn is under way.
  private(set) var dueAt: UInt64?
  /// When something last changed, here or on the carrier.
  private var changedAt: UInt64
  private var writeDelay = Limits.carrierWriteMilliseconds
  private var hasWritten = false
  /// Whether somebody asked during the turn under way.
  private(set) var isAsked = false
  private var failures = 0
  /// The storage asked to wait until then.
  private var notBefore: UInt64 = 0

  /// The first turn is due at once.
  init(shortestMilliseconds shortest: UInt64, at now: UInt64) {
    self.shortest = shortest
    changedAt = now
    dueAt = now
  }

  mutating func begin() {
    writeDelay =
      hasWritten
      ? min(2 * writeDelay, Limits.carrierLongestWriteMilliseconds)
      : Limits.carrierWriteMilliseconds
    hasWritten = false
    isAsked = false
    dueAt = nil
  }

  /// A turn is over. While nothing changes, the next waits longer and longer.
  mutating func end(isNews: Bool, at now: UInt64) {
    failures = 0
    if isNews { changedAt = now }
    let wait = min(max((now - changedAt) / 2, shortest), Limits.carrierLongestMilliseconds)
    plan(at: now + wait)
    if hasWritten { plan(at: now + writeDelay) }
    if isAsked { plan(at: now) }
  }

  /// A turn failed; `retryAfter` is what the storage asked for.
  mutating func fail(retryAfter: UInt64?, at now: UInt64) {
    failures = min(failures + 1, 10)
    notBefore = now + min(retryAfter ?? 0, Limits.carrierBackOffMilliseconds)
    plan(at: now + min(shortest << UInt64(failures), Limits.carrierBackOffMilliseconds))
  }

  /// A program on this host wrote. While it goes on, turns become rarer.
  mutating func wrote(at now: UInt64) {
    changedAt = now
    hasWritten = true
    if dueAt != nil, failures == 0 { plan(at: now + writeDelay) }
  }

  /// Change sets came from a session. Other devices may put them first, so the next turn waits a
  /// random time.
  mutating func noteSessionNews(at now: UInt64, random: UInt64) {
    changedAt = now
    let wait = Limits.carrierSessionNewsMilliseconds
    if dueAt != nil, failures == 0 { plan(at: now + wait + random % (2 * wait)) }
  }

  /// A person asks, or the node stops: a turn that is under way is followed by another.
  mutating func ask(at now: UInt64) {
    if dueAt != nil { plan(at: now) } else { isAsked = true }
  }

  /// The storage tells of a change, perhaps of this device's own.
  mutating func noteChange(at now: UInt64) {
    if dueAt != nil { plan(at: now) }
  }

  /// Another turn is needed by then.
  mutating func plan(at time: UInt64) {
    dueAt = max(min(dueAt ?? .max, time), notBefore)
  }
}
