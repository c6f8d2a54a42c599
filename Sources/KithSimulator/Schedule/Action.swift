/// One event of a schedule. Devices and stores are counted modulo their present number, so that a
/// shortened schedule still means something.
package struct Action: Codable, Hashable, Sendable {
  /// The time, in microseconds since its phase began.
  package var at: UInt64
  package var kind: Kind

  package init(at: UInt64, _ kind: Kind) {
    self.at = at
    self.kind = kind
  }

  package struct Write: Codable, Hashable, Sendable {
    package var key: Int
    /// The value's size, in characters; nil removes the key.
    package var size: Int?
  }

  package enum Kind: Codable, Hashable, Sendable {
    /// A program writes a transaction.
    case write(device: Int, store: Int, [Write])
    /// A program takes its refusals.
    case takeRefusals(device: Int, store: Int)
    /// The process dies after so many more effects, and starts again later.
    case crash(device: Int, afterEffects: Int, downMicroseconds: UInt64)
    /// The process is stopped.
    case pause(device: Int, microseconds: UInt64)
    /// The directory is copied away.
    case backUp(device: Int)
    /// The device starts again from the last copy; `isNoticed`: its storage detects that.
    case restore(device: Int, isNoticed: Bool)
    /// A copy of the directory is started beside the device.
    case clone(device: Int)
    /// A new device joins, certified by this one.
    case join(by: Int)
    /// No message passes between the devices whose bit is set and the others; `isOneWay`: only from
    /// the first to the others.
    case partition(side: UInt64, isOneWay: Bool)
    /// The partitions end, each pair of devices at a random moment within so long ("swizzled").
    case heal(withinMicroseconds: UInt64)
    /// The connections of a device end.
    case cut(device: Int)
    /// A device receives and sends so many bytes a second.
    case slow(device: Int, bytesPerSecond: Int)
    case stepClock(device: Int, milliseconds: Int64)
    /// A host's clock runs faster by so many millionths.
    case drift(device: Int, partsPerMillion: Int)
    /// The kernel calls the clock synchronised, or no longer.
    case synchronise(device: Int, Bool)
    /// The disk refuses writes, or accepts them again.
    case fillDisk(device: Int, Bool)
    /// A stored bit flips; the process dies of it.
    case flipBit(device: Int)
    /// A member sends a forged message to a peer.
    case forge(device: Int, to: Int, store: Int, Forgery)
    /// A person revokes a device on another.
    case revoke(device: Int, by: Int)
    /// The program opens a store under limits of its own.
    case changePolicy(device: Int, store: Int, isOther: Bool)
  }
}

/// A traitor's message.
package enum Forgery: String, Codable, CaseIterable, Sendable {
  case badSignature
  case sequenceZero
  case sequenceGap
  case farFuture
  /// In the last generation of clocks.
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
