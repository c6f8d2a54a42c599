public import KithCrypto

/// A device's id: its Ed25519 public key. Ids compare as bytes (`Docs/Glossary.md`).
public typealias DeviceID = SigningPublicKey

/// An account's id: the BLAKE2b-256 of its genesis record's body (`Docs/Glossary.md`).
public struct AccountID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The digest that is the id.
  public let digest: Digest256

  /// Makes an id from a digest.
  public init(_ digest: Digest256) {
    self.digest = digest
  }

  /// The id's 32 bytes.
  public var bytes: [UInt8] { digest.bytes }

  /// The digest in hexadecimal, shortened for logs.
  public var description: String { digest.description }

  /// Compares as bytes.
  public static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// An epoch's id: the BLAKE2b-256 of its box public key (`Docs/Protocol.md`, "Membership").
public struct EpochID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The digest that is the id.
  public let digest: Digest256

  /// Makes an id from a digest.
  public init(_ digest: Digest256) {
    self.digest = digest
  }

  /// The id's 32 bytes.
  public var bytes: [UInt8] { digest.bytes }

  /// The digest in hexadecimal, shortened for logs.
  public var description: String { digest.description }

  /// Compares as bytes.
  public static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// A random number that tells databases of a device apart. Every new, restored or copied database
/// has its own (`Docs/Protocol.md`, "Entries and change sets").
public struct Incarnation: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The 64 random bits.
  public let rawValue: UInt64

  /// Makes an incarnation from its bits.
  public init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The bits in hexadecimal.
  public var description: String { String(rawValue, radix: 16) }

  /// Compares as numbers.
  public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of one process that runs a node: 16 random bytes, new at every start. One device under
/// two of them at once is a clone (`Docs/Protocol.md`, "Entries and change sets").
public struct ProcessID: Hashable, Sendable {
  /// The 16 bytes.
  public let digest: Digest128

  /// Makes an id from its bytes.
  public init(_ digest: Digest128) {
    self.digest = digest
  }
}
