public import KithCrypto

/// A device's id: its Ed25519 public key. Ids compare as bytes (`Docs/Glossary.md`).
public typealias DeviceID = SigningPublicKey

/// An epoch's id: the BLAKE2b-256 of its box public key (`Docs/Protocol.md`, "Membership").
package struct EpochID: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The digest that is the id.
  package let digest: Digest256

  /// Makes an id from a digest.
  package init(_ digest: Digest256) {
    self.digest = digest
  }

  /// The id's 32 bytes.
  package var bytes: [UInt8] { digest.bytes }

  /// The digest in hexadecimal, shortened for logs.
  package var description: String { digest.description }

  /// Compares as bytes.
  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// A random number that tells databases of a device apart. Every new, restored or copied database
/// has its own (`Docs/Protocol.md`, "Entries and change sets").
package struct Incarnation: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// The 64 random bits.
  package let rawValue: UInt64

  /// Makes an incarnation from its bits.
  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  /// The bits in hexadecimal.
  package var description: String { String(rawValue, radix: 16) }

  /// Compares as numbers.
  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of one process that runs a node: 16 random bytes, new at every start. One device under
/// two of them at once is a clone (`Docs/Protocol.md`, "Entries and change sets").
package struct ProcessID: Hashable, Sendable {
  /// The 16 bytes.
  package let digest: Digest128

  /// Makes an id from its bytes.
  package init(_ digest: Digest128) {
    self.digest = digest
  }
}
