extension FaultyProxy {
  /// What is done to the bytes of one direction, on each connection by itself.
  ///
  /// The default does nothing: bytes pass as they come.
  public struct Faults: Sendable, Hashable {
    /// How long a byte stays in the proxy before it may pass. Bytes that come together pass together:
    /// it delays, and does not slow down. Negative counts as zero.
    public var delay: Duration
    /// How many bytes a second pass on one connection; nil: as many as come. At least 1.
    public var bytesPerSecond: Int?
    /// Which bytes have one bit turned over, chosen at random; nil: none.
    public var corruption: Frequency?
    /// Which bytes a connection is reset at, instead of passing them; nil: none. Both sides get a
    /// TCP reset (RST), and what the proxy still held is lost, in both directions.
    public var resets: Frequency?
    /// Whether nothing passes, the end of a connection and the making of a new one included.
    ///
    /// Nothing is lost: when it is lifted, what was held passes, as after a cable that was out.
    /// In one direction only it is a one-way partition. What waits is bounded
    /// (``FaultyProxy/Configuration/heldBytesLimit``); who sends more waits too.
    public var isStalled: Bool

    /// Faults; those not named are off.
    public init(
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
    public static let none = Faults()
  }

  /// How often something happens to a byte of a connection's direction.
  ///
  /// Which bytes it happens to follows from the seed, the connection's number, the direction and the
  /// byte's position, never from how the bytes were cut into packets.
  public struct Frequency: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
      case chance(Double)
      case every(Int)
    }

    let kind: Kind

    /// To each byte with this chance, from 0 (never) to 1 (always); what lies outside counts as the
    /// nearest of the two, and what is no number as 0.
    public static func chance(_ chance: Double) -> Frequency {
      Frequency(kind: .chance(chance.isNaN ? 0 : min(max(chance, 0), 1)))
    }

    /// To the *n*-th byte since the connection began, the 2*n*-th, and so on; less than 1 counts as 1.
    public static func every(_ bytes: Int) -> Frequency {
      Frequency(kind: .every(max(bytes, 1)))
    }
  }

  /// Which way bytes go.
  public struct Direction: OptionSet, Sendable, Hashable {
    /// One bit a direction.
    public let rawValue: UInt8

    /// Directions by their bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// From whoever connected to the proxy towards the target.
    public static let forward = Direction(rawValue: 1)
    /// From the target back to whoever connected.
    public static let backward = Direction(rawValue: 2)
    /// Both.
    public static let both: Direction = [.forward, .backward]
  }
}
