internal import KithCrypto

/// A device's id for people to compare: 4 groups of 4 characters of Crockford base32, the first 10
/// bytes of BLAKE2b-256 over `kith device fingerprint`, a zero byte and the id.
package struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
  /// The text, such as `7K2M-0QRS-WXYZ-1234`.
  package let description: String

  /// Makes the fingerprint of a device.
  package init(of device: DeviceID) {
    let digest = Blake2b.digest256(Array("kith device fingerprint".utf8), [0], device.bytes)
    description = Crockford.grouped(Crockford.encode(Array(digest.bytes.prefix(10))), by: 4)
  }
}
