/// A reading of a hybrid logical clock: 48 bits of milliseconds since 1970, then 16 of counter,
/// which carries over into the milliseconds (Kulkarni, Demirbas, Madappa, Avva and Leone, "Logical
/// Physical Clocks", 2014; `Docs/Protocol.md`, "Clocks, stamps, claims").
public struct HybridTime: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The 64 bits.
  public let rawValue: UInt64

  /// The earliest reading.
  public static let zero = Self(rawValue: 0)

  /// Makes a reading of its bits.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The first reading within a millisecond since 1970; of the last that has one beyond it.
  public init(milliseconds: UInt64) {
    self.rawValue = min(milliseconds, 1 << 48 - 1) << 16
  }

  /// Milliseconds since 1970.
  public var milliseconds: UInt64 { rawValue >> 16 }

  /// How many readings came before this one in its millisecond.
  public var counter: UInt16 { UInt16(truncatingIfNeeded: rawValue) }

  /// Whether this is a provisional stamp's: below every reading of a real clock
  /// (`Docs/Protocol.md`, "First sync").
  public var isProvisional: Bool { rawValue < 1 << 40 }

  /// The next reading; the counter carries over. The last reading has none, and stays.
  public var successor: Self { Self(rawValue: rawValue == .max ? .max : rawValue + 1) }

  /// Milliseconds and counter.
  public var description: String { "\(milliseconds).\(counter)" }

  /// Compares as times.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
