/// One event of a schedule. Devices and stores count modulo their present number, so that a
/// shortened schedule stays valid.
package struct Action: Codable, Hashable, Sendable {
  /// In microseconds since its phase began.
  package var at: UInt64
  package var kind: Kind

  package init(at: UInt64, _ kind: Kind) {
    self.at = at
    self.kind = kind
  }

  package struct Write: Codable, Hashable, Sendable {
    package var key: Int
    /// In characters; nil removes the key.
    package var size: Int?
  }

  package enum Kind: Codable, Hashable, Sendable {
    case write(device: Int, store: Int, [Write])
    case takeRefusals(device: Int, store: Int)
    /// The process dies after so many more effects, and starts again later.
    case crash(device: Int, afterEffects: Int, downMicroseconds: UInt64)
    case pause(device: Int, microseconds: UInt64)
    case backUp(device: Int)
    /// The device starts from its last copy; `isNoticed`: its storage detects that.
    case restore(device: Int, isNoticed: Bool)
    /// A copy of the directory runs beside the device.
    case clone(device: Int)
    /// This device certifies a new one.
    case join(by: Int)
    /// No message passes between the devices whose bit is set and the others; `isOneWay`: only from
    /// the first to the others.
    case partition(side: UInt64, isOneWay: Bool)
    /// Partitions end, each pair at a random moment within this time ("swizzled").
    case heal(withinMicroseconds: UInt64)
    /// All connections of a device end.
    case cut(device: Int)
    case slow(device: Int, bytesPerSecond: Int)
    case stepClock(device: Int, milliseconds: Int64)
    /// The clock runs faster by so many millionths.
    case drift(device: Int, partsPerMillion: Int)
    /// The kernel calls the clock synchronised, or no longer.
    case synchronise(device: Int, Bool)
    case fillDisk(device: Int, Bool)
    /// A stored bit flips; the process dies of it.
    case flipBit(device: Int)
    case forge(device: Int, to: Int, store: Int, Forgery)
    case revoke(device: Int, by: Int)
    /// A program opens a store under other limits, or the usual ones.
    case changePolicy(device: Int, store: Int, isOther: Bool)
    /// The device ends its last turns, stops, and starts again later.
    case goOff(device: Int, microseconds: UInt64)
    /// A person asks a device to synchronise.
    case ask(device: Int)
    case spoil(carrier: Int, Spoiling)
    /// A member's next objects say what is not so.
    case lie(device: Int, Lie)
    /// A device that is to be revoked, or was, abuses what it knows.
    case steal(device: Int, carrier: Int, Theft)
  }
}

package enum Forgery: String, Codable, CaseIterable, Sendable {
  case badSignature
  case sequenceZero
  case sequenceGap
  case farFuture
  /// Its clock is in the last generation.
  case lastGeneration
  case stampAfterHeader
  case claimAfterHeader
  case lateFallback
  case overPolicy
  case foreignStamp
  case unknownEpoch
  case wrongStore
  case fork
  case replay
  case boastfulVector
  case boastfulCover
  case garbage
  case unknownToItself
  case flood
}
