package import KithCrypto

/// A device's own secrets, which never leave it. A class, so that guarded memory holds them once.
package final class DeviceKeys: Sendable {
  /// Signs change sets and records.
  package let signing: SigningKey
  /// Opens epoch secrets and seals entries.
  package let box: BoxKey
  /// The Noise static key.
  package let transport: TransportPrivateKey
  package let id: DeviceID
  package let boxPublicKey: BoxPublicKey
  package let transportPublicKey: TransportPublicKey

  package init(
    signingSeed: borrowing SigningSeed, boxSeed: borrowing BoxSeed,
    transport: consuming TransportPrivateKey
  ) {
    signing = SigningKey(seed: signingSeed)
    box = BoxKey(seed: boxSeed)
    id = signing.publicKey
    boxPublicKey = box.publicKey
    transportPublicKey = transport.publicKey
    self.transport = transport
  }
}

/// A device's id for people to compare (`Docs/Protocol.md`, "Texts for people").
package struct Fingerprint: Hashable, Sendable, CustomStringConvertible {
  /// Such as `7K2M-0QRS-WXYZ-1234`.
  package let description: String

  package init(of device: DeviceID) {
    let digest = Blake2b.digest256(Array("kith device fingerprint".utf8), [0], device.bytes)
    description = Crockford.grouped(Crockford.encode(Array(digest.bytes.prefix(10))), by: 4)
  }
}
