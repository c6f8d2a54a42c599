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
