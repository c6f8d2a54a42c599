package import KithCore
package import KithCrypto

/// The identity of a device: four secrets of 32 bytes, drawn once.
package struct DeviceSecrets: ~Copyable, Sendable {
  let signing: SigningSeed
  let box: BoxSeed
  let transport: TransportPrivateKey
  /// For data on this device's disk.
  let storage: StorageKey

  static let byteCount = 4 * secretKeyByteCount

  package init(random entropy: inout some Entropy) {
    signing = SigningSeed(random: &entropy)
    box = BoxSeed(random: &entropy)
    transport = TransportPrivateKey(random: &entropy)
    storage = StorageKey(random: &entropy)
  }

  init(joined: borrowing SecretBytes) {
    precondition(joined.count == Self.byteCount, "device secrets have \(Self.byteCount) bytes")
    signing = SigningSeed(unchecked: joined.copy(0..<32))
    box = BoxSeed(unchecked: joined.copy(32..<64))
    transport = TransportPrivateKey(unchecked: joined.copy(64..<96))
    storage = StorageKey(unchecked: joined.copy(96..<128))
  }

  package borrowing func makeKeys() -> DeviceKeys {
    DeviceKeys(signingSeed: signing, boxSeed: box, transport: transport.copy())
  }

  /// In one piece of guarded memory.
  borrowing func joined() -> SecretBytes {
    signing.withUnsafeBytes { signing in
      box.withUnsafeBytes { box in
        transport.withUnsafeBytes { transport in
          storage.withUnsafeBytes { storage in
            SecretBytes(count: Self.byteCount) { target in
              for (number, part) in [signing, box, transport, storage].enumerated() {
                UnsafeMutableRawBufferPointer(rebasing: target[(number * part.count)...])
                  .copyMemory(from: part)
              }
            }
          }
        }
      }
    }
  }
}
