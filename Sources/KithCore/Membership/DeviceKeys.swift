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
