/// A reading of a hybrid logical clock, compared as one number.
///
/// From the top: 8 bits of generation, 44 of milliseconds since 1970, 12 of counter, which carries
/// over (Kulkarni, Demirbas, Madappa, Avva and Leone, "Logical Physical Clocks", 2014;
/// `Docs/Protocol.md`, "Clocks, stamps, claims").
package struct HybridTime: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package static let zero = Self(rawValue: 0)

  /// The generation in which accounts begin; generation 0 is for adopted writes.
  package static let firstGeneration: UInt8 = 1

  private static let lastMillisecond: UInt64 = 1 << 44 - 1

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The first reading within a millisecond, or within the last that the bits can hold.
  package init(generation: UInt8 = Self.firstGeneration, milliseconds: UInt64) {
    self.rawValue = UInt64(generation) << 56 | min(milliseconds, Self.lastMillisecond) << 12
  }

  /// How often clocks were healed before this reading (`Docs/Decisions/clocks.md`).
  package var generation: UInt8 { UInt8(rawValue >> 56) }

  package var milliseconds: UInt64 { rawValue >> 12 & Self.lastMillisecond }

  package var counter: UInt16 { UInt16(rawValue & 0xfff) }

  /// Whether a publishing clock may be so late; otherwise its change set is malformed, in any
  /// generation.
  package var isPossible: Bool { milliseconds <= Limits.lastWallMilliseconds }

  /// An adopted write's reading is before every clock's (`Docs/Protocol/drafts.md`, "Adoption").
  package var isAdopted: Bool { generation < Self.firstGeneration }

  var adopted: Self { Self(rawValue: rawValue & (1 << 56 - 1)) }

  /// The next reading; the counter carries over. The last reading returns itself.
  package var successor: Self { Self(rawValue: rawValue == .max ? .max : rawValue + 1) }

  package var description: String { "\(generation):\(milliseconds).\(counter)" }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension HybridTime: Codable {
  package init(from decoder: any Decoder) throws {
    let bits = try decoder.singleValueContainer().decode(Int64.self)
    self.init(rawValue: UInt64(bitPattern: bits))
  }

  /// Property lists have only signed integers.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Int64(bitPattern: rawValue))
  }
}

/// A device's hybrid logical clock, persisted with the data that it stamped (`Docs/Protocol.md`,
/// "Clocks, stamps, claims").
package struct HybridClock: Hashable, Sendable {
  /// The latest reading given out or witnessed.
  package private(set) var latest: HybridTime

  package init(latest: HybridTime = .zero) {
    self.latest = latest
  }

  /// Returns a reading later than all before: the wall clock in the current generation, or the
  /// successor of ``latest`` if later.
  ///
  /// The wall clock counts only until 2200, so the counter never carries into the generation.
  package mutating func tick(at instant: Instant) -> HybridTime {
    let wall = HybridTime(
      generation: max(latest.generation, HybridTime.firstGeneration),
      milliseconds: min(instant.wallMilliseconds, Limits.lastWallMilliseconds))
    latest = max(wall, latest.successor)
    return latest
  }

  /// Takes in a reading from elsewhere: every later ``tick(at:)`` is after it.
  package mutating func witness(_ time: HybridTime) {
    latest = max(latest, time)
  }
}
