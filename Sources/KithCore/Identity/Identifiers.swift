public import KithCrypto

/// A device's id: its Ed25519 public key, compared as bytes (`Docs/Glossary.md`).
public typealias DeviceID = SigningPublicKey

/// An epoch's id: the BLAKE2b-256 of its box public key (`Docs/Protocol.md`, "Membership").
package struct EpochID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let digest: Digest256

  package init(_ digest: Digest256) {
    self.digest = digest
  }

  package var bytes: [UInt8] { digest.bytes }

  package var description: String { digest.description }

  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// 64 random bits that tell databases of a device apart: each new, restored or copied database has
/// its own (`Docs/Protocol.md`, "Ids").
package struct Incarnation: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package var description: String { String(rawValue, radix: 16) }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of a node's running process: 16 random bytes, new whenever it reads its storage. One device
/// under two of them at once is a clone (`Docs/Protocol.md`, "Ids").
package struct ProcessID: Hashable, Sendable {
  package let digest: Digest128

  package init(_ digest: Digest128) {
    self.digest = digest
  }
}

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

extension Entropy {
  mutating func drawNumber() -> UInt64 {
    draw(Digest128.self).bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
