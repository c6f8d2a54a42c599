/// A reading of a hybrid logical clock: 8 bits of generation, 44 of milliseconds since 1970, then
/// 12 of counter, which carries over (Kulkarni, Demirbas, Madappa, Avva and Leone, "Logical
/// Physical Clocks", 2014; `Docs/Protocol.md`, "Clocks, stamps, claims"). Readings compare as one
/// number, so every reading of a later generation is later.
package struct HybridTime: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The 64 bits.
  package let rawValue: UInt64

  /// The earliest reading.
  package static let zero = Self(rawValue: 0)

  /// The generation in which accounts begin. The one before it is for adopted writes.
  package static let firstGeneration: UInt8 = 1

  private static let lastMillisecond: UInt64 = 1 << 44 - 1

  /// Makes a reading of its bits.
  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The first reading within a millisecond since 1970; of the last that has one beyond it.
  package init(generation: UInt8 = Self.firstGeneration, milliseconds: UInt64) {
    self.rawValue = UInt64(generation) << 56 | min(milliseconds, Self.lastMillisecond) << 12
  }

  /// How often clocks were healed before this reading (`Docs/Decisions/clocks.md`).
  package var generation: UInt8 { UInt8(rawValue >> 56) }

  /// Milliseconds since 1970.
  package var milliseconds: UInt64 { rawValue >> 12 & Self.lastMillisecond }

  /// How many readings came before this one in its millisecond.
  package var counter: UInt16 { UInt16(rawValue & 0xfff) }

  /// Whether this is an adopted write's: below every reading of a clock (`Docs/Protocol.md`,
  /// "First sync").
  package var isAdopted: Bool { generation < Self.firstGeneration }

  /// The same reading as an adopted write's.
  var adopted: Self { Self(rawValue: rawValue & (1 << 56 - 1)) }

  /// The next reading; the counter carries over. The last reading has none, and stays.
  package var successor: Self { Self(rawValue: rawValue == .max ? .max : rawValue + 1) }

  /// Generation, milliseconds and counter.
  package var description: String { "\(generation):\(milliseconds).\(counter)" }

  /// Compares as times.
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

extension HybridTime: Codable {
  /// Reads the bits.
  package init(from decoder: any Decoder) throws {
    let bits = try decoder.singleValueContainer().decode(Int64.self)
    self.init(rawValue: UInt64(bitPattern: bits))
  }

  /// Writes the bits as a signed integer, which property lists have.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Int64(bitPattern: rawValue))
  }
}
