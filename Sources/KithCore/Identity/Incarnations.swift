internal import KithCrypto

/// The incarnations under which this device publishes. It takes a new one whenever its database may
/// not know all of its chain: if it is new, was copied or restored, or lost data of its own.
struct Incarnations: Sendable {
  enum OnRenewal: Equatable {
    case first
    case another
    /// All are used up: the device publishes no more (`Docs/Protocol.md`, "Copies").
    case noneLeft
  }

  /// Nil until the first start.
  private(set) var current: Incarnation?
  private var clones: Set<ProcessID> = []

  init(current: Incarnation? = nil) { self.current = current }

  /// Replaces the current one by a random one; `used` are those with chains in the stores.
  mutating func renew(_ fresh: Incarnation, used: Set<Incarnation>) -> OnRenewal {
    let isFirst = current == nil
    current = fresh
    if areSpent(used) { return .noneLeft }
    return isFirst ? .first : .another
  }

  /// Whether all are used up. Derived from stored data, so that a restart keeps it.
  func areSpent(_ used: Set<Incarnation>) -> Bool {
    used.count - (current.map(used.contains) == true ? 1 : 0) >= Limits.incarnations
  }

  /// This device dialled itself. Returns whether the other process is that of a copy, which each
  /// counts once because it may connect again.
  mutating func noteClone(_ other: ProcessID, as own: ProcessID) -> Bool {
    other != own && clones.count < Limits.incarnations && clones.insert(other).inserted
  }
}
