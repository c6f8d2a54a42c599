public import KithCrypto

/// A device's id: its Ed25519 public key, compared as bytes (`Docs/Glossary.md`).
public typealias DeviceID = SigningPublicKey

/// An epoch's id: the BLAKE2b-256 of its box public key (`Docs/Protocol.md`, "Membership").
package struct EpochID: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let digest: Digest256

  package init(_ digest: Digest256) {
    self.digest = digest
  }

  package var bytes: [UInt8] { digest.bytes }

  package var description: String { digest.description }

  package static func < (left: Self, right: Self) -> Bool { left.digest < right.digest }
}

/// 64 random bits that tell databases of a device apart: each new, restored or copied database has
/// its own (`Docs/Protocol.md`, "Ids").
package struct Incarnation: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let rawValue: UInt64

  package init(rawValue: UInt64) {
    self.rawValue = rawValue
  }

  package var description: String { String(rawValue, radix: 16) }

  package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}

/// The id of a node's running process: 16 random bytes, new whenever it reads its storage. One device
/// under two of them at once is a clone (`Docs/Protocol.md`, "Ids").
package struct ProcessID: Hashable, Sendable {
  package let digest: Digest128

  package init(_ digest: Digest128) {
    self.digest = digest
  }
}
