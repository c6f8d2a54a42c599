public import KithCrypto

/// A device's own secrets, which never leave it. It is a class, so that they are in one place of
/// guarded memory and shared by reference.
public final class DeviceKeys: Sendable {
  /// Signs change sets and records.
  public let signing: SigningKey
  /// Opens epoch secrets, seals entries.
  public let box: BoxKey
  /// The Noise static key.
  public let transport: TransportPrivateKey
  /// The device's id.
  public let id: DeviceID
  /// The public half of ``box``.
  public let boxPublicKey: BoxPublicKey
  /// The public half of ``transport``.
  public let transportPublicKey: TransportPublicKey

  /// Makes the keys from their seeds.
  public init(
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
