internal import NIOCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// Decides which bytes of one direction of a connection are altered, and at which byte it is reset.
///
/// A value whose only input is the bytes: the same seed and faults give the same decisions, however
/// the bytes are split.
struct ByteFaults {
  /// The result for some bytes.
  struct Outcome {
    /// The number of altered bytes.
    var corrupted = 0
    /// The number of bytes that pass before the connection is reset; nil if all pass.
    var resetAfter: Int?
  }

  private var position = 0
  private var corruption: Schedule
  private var resets: Schedule
  private var bits: SplitMix64

  init(seed: UInt64) {
    var seeds = SplitMix64(state: seed)
    corruption = Schedule(random: SplitMix64(state: seeds.next()))
    resets = Schedule(random: SplitMix64(state: seeds.next()))
    bits = SplitMix64(state: seeds.next())
  }

  /// Sets the faults from the next byte on.
  mutating func set(_ faults: FaultyProxy.Faults) {
    corruption.set(faults.corruption, from: position)
    resets.set(faults.resets, from: position)
  }

  /// Applies the faults to the next bytes.
  ///
  /// - Complexity: O(*k*) in the altered bytes.
  mutating func apply(to bytes: inout ByteBuffer) -> Outcome {
    var outcome = Outcome()
    let end = position + bytes.readableBytes
    if let reset = resets.next, reset < end { outcome.resetAfter = reset - position }
    let passing = outcome.resetAfter.map { position + $0 } ?? end
    while let next = corruption.next, next < passing {
      let index = bytes.readerIndex + next - position
      let bit = UInt8(truncatingIfNeeded: bits.next()) & 7
      if let byte = bytes.getInteger(at: index, as: UInt8.self) {
        bytes.setInteger(byte ^ (1 << bit), at: index)
        outcome.corrupted += 1
      }
      corruption.advance()
    }
    position = end
    return outcome
  }

  /// The positions of one kind of fault, one after the other.
  private struct Schedule {
    private var frequency: FaultyProxy.Frequency?
    private(set) var next: Int?
    private var random: SplitMix64

    init(random: SplitMix64) { self.random = random }

    mutating func set(_ frequency: FaultyProxy.Frequency?, from position: Int) {
      guard frequency != self.frequency else { return }
      self.frequency = frequency
      next = following(position)
    }

    mutating func advance() {
      next = next.flatMap { following($0 + 1) }
    }

    /// Returns the position of the next fault at or after a position.
    private mutating func following(_ position: Int) -> Int? {
      switch frequency?.kind {
      case nil: return nil
      case .every(let bytes):
        return position + (bytes - 1 - position % bytes)
      case .chance(let chance):
        guard chance > 0 else { return nil }
        guard chance < 1 else { return position }
        // The number of spared bytes in a row is distributed geometrically.
        let uniform = Double.random(in: Double.leastNonzeroMagnitude..<1, using: &random)
        let spared = (log(uniform) / log1p(-chance)).rounded(.down)
        return spared < 1e15 ? position + Int(spared) : nil
      }
    }
  }
}

/// Numbers that follow from a seed (SplitMix64, Steele, Lea and Flood, 2014).
struct SplitMix64: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension FaultyProxy {
  /// The faults of one direction, which apply to each connection separately.
  ///
  /// By default there are none: bytes pass as they come.
  package struct Faults: Sendable, Hashable {
    /// The time that a byte stays in the proxy.
    ///
    /// Bytes that arrive together pass together, so this adds delay and does not reduce the rate. A
    /// negative time counts as zero.
    package var delay: Duration
    /// The bytes that pass on one connection each second; nil: no limit. At least 1.
    package var bytesPerSecond: Int?
    /// The bytes in which one random bit is inverted; nil: none.
    package var corruption: Frequency?
    /// The bytes at which a connection is reset instead of passing them; nil: none.
    ///
    /// Both sides get a TCP reset (RST), and the bytes that the proxy still held are lost, in
    /// both directions.
    package var resets: Frequency?
    /// Whether nothing passes, including the end of a connection and the start of a new one.
    ///
    /// Nothing is lost: when the stall ends, the held bytes pass, as after a cable was reconnected.
    /// A stall of one direction is a one-way partition. The held bytes are limited
    /// (``FaultyProxy/Configuration/heldBytesLimit``); beyond that the sender is blocked.
    package var isStalled: Bool

    /// Makes faults; those not named are off.
    package init(
      delay: Duration = .zero, bytesPerSecond: Int? = nil, corruption: Frequency? = nil,
      resets: Frequency? = nil, isStalled: Bool = false
    ) {
      self.delay = delay
      self.bytesPerSecond = bytesPerSecond
      self.corruption = corruption
      self.resets = resets
      self.isStalled = isStalled
    }

    /// No fault at all.
    package static let none = Faults()
  }

  /// The share of bytes to which a fault happens.
  ///
  /// The chosen bytes follow from the seed, the connection's number, the direction and the byte's
  /// position. They do not depend on how the bytes were split into packets.
  package struct Frequency: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
      case chance(Double)
      case every(Int)
    }

    let kind: Kind

    /// Chooses each byte with a chance from 0 (never) to 1 (always).
    ///
    /// A chance outside is clamped, and NaN counts as 0.
    package static func chance(_ chance: Double) -> Frequency {
      Frequency(kind: .chance(chance.isNaN ? 0 : min(max(chance, 0), 1)))
    }

    /// Chooses the *n*-th byte of the connection, the 2*n*-th, and so on; less than 1 counts as 1.
    package static func every(_ bytes: Int) -> Frequency {
      Frequency(kind: .every(max(bytes, 1)))
    }
  }

  /// The direction of bytes.
  package struct Direction: OptionSet, Sendable, Hashable {
    /// The bits of the directions.
    package let rawValue: UInt8

    /// Makes directions from their bits.
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// From the client of the proxy to the target.
    package static let forward = Direction(rawValue: 1)
    /// From the target back to the client.
    package static let backward = Direction(rawValue: 2)
    /// Both.
    package static let both: Direction = [.forward, .backward]
  }
}
