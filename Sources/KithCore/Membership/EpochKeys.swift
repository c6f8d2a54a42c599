package import KithCrypto

/// The keys of an epoch, derived from its secret by `crypto_kdf` with the context `KithEpo1`
/// (`Docs/Protocol.md`, "Membership"). A class, so that guarded memory holds them once.
package final class EpochKeys: Sendable {
  package let id: EpochID
  package let generation: UInt32
  /// Subkey 1: entries are sealed to it.
  package let box: BoxKey
  /// Subkey 2: the handshakes' pre-shared key.
  package let psk: PresharedKey
  /// Subkey 3: hides store identifiers.
  package let storeTagKey: StoreTagKey
  /// Subkey 4: seals beacons, which hides their senders.
  package let beaconKey: BeaconKey
  /// Subkey 5: seals the objects on carriers.
  let carrierKey: CarrierKey
  let secret: EpochSecret

  package init(secret: consuming EpochSecret, generation: UInt32) {
    let seed: BoxSeed = KeyDerivation.derive(1, context: "KithEpo1", from: secret)
    box = BoxKey(seed: seed)
    psk = KeyDerivation.derive(2, context: "KithEpo1", from: secret)
    storeTagKey = KeyDerivation.derive(3, context: "KithEpo1", from: secret)
    beaconKey = KeyDerivation.derive(4, context: "KithEpo1", from: secret)
    carrierKey = KeyDerivation.derive(5, context: "KithEpo1", from: secret)
    id = EpochID(Blake2b.digest256(box.publicKey.bytes))
    self.generation = generation
    self.secret = secret
  }

  /// Returns a store's tag, a keyed BLAKE2b-128, so only members of the epoch can compute it
  /// (`Docs/Protocol.md`, "Entries and change sets").
  package func storeTag(of store: StoreIdentifier) -> Digest128 {
    Blake2b.keyed128(Array(store.rawValue.utf8), key: storeTagKey)
  }

  /// Returns nil if the secret was sealed to another key, or belongs to another epoch.
  static func open(
    _ box: [UInt8], of epoch: EpochID, generation: UInt32, with key: borrowing BoxKey
  ) -> EpochKeys? {
    do throws(CryptoError) {
      let secret = try EpochSecret(AnonymousBox.openSecret(box, with: key))
      let keys = EpochKeys(secret: secret, generation: generation)
      return keys.id == epoch ? keys : nil
    } catch {
      return nil
    }
  }

  /// Returns nil if the recipient's box key is of low order.
  func sealed(to recipient: BoxPublicKey, entropy: inout some Entropy) -> [UInt8]? {
    let ephemeral = BoxSeed(random: &entropy)
    do throws(CryptoError) {
      return try AnonymousBox.seal(secret: secret, to: recipient, ephemeral: ephemeral)
    } catch {
      return nil
    }
  }
}
