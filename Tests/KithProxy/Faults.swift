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
