internal import KithCrypto

/// A device's id for people to compare (`Docs/Protocol.md`, "Texts for people").
package struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
  /// Such as `7K2M-0QRS-WXYZ-1234`.
  package let description: String

  package init(of device: DeviceID) {
    let digest = Blake2b.digest256(Array("kith device fingerprint".utf8), [0], device.bytes)
    description = Crockford.grouped(Crockford.encode(Array(digest.bytes.prefix(10))), by: 4)
  }
}
