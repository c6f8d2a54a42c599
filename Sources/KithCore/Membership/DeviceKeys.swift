package import KithCrypto

/// A device's own secrets, which never leave it. A class, so that they are once in guarded memory.
package final class DeviceKeys: Sendable {
  /// Signs change sets and records.
  package let signing: SigningKey
  /// Opens epoch secrets, seals entries.
  package let box: BoxKey
  /// The Noise static key.
  package let transport: TransportPrivateKey
  /// The device's id.
  package let id: DeviceID
  /// The public half of ``box``.
  package let boxPublicKey: BoxPublicKey
  /// The public half of ``transport``.
  package let transportPublicKey: TransportPublicKey

  /// Makes the keys from their seeds.
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
