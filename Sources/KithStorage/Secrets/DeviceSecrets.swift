package import KithCore
package import KithCrypto

/// The identity of a device: four secrets of 32 bytes, drawn once.
package struct DeviceSecrets: ~Copyable, Sendable {
  /// The seed of the key that signs.
  let signing: SigningSeed
  /// The seed of the key that opens boxes.
  let box: BoxSeed
  /// The Noise static key.
  let transport: TransportPrivateKey
  /// The key that seals data on this device's disk.
  let storage: StorageKey

  /// The number of bytes of all four secrets.
  static let byteCount = 4 * secretKeyByteCount

  /// Draws new secrets.
  package init(random entropy: inout some Entropy) {
    signing = SigningSeed(random: &entropy)
    box = BoxSeed(random: &entropy)
    transport = TransportPrivateKey(random: &entropy)
    storage = StorageKey(random: &entropy)
  }

  /// Reads the bytes of ``joined()``, whose number must be right.
  init(joined: borrowing SecretBytes) {
    precondition(joined.count == Self.byteCount, "device secrets have \(Self.byteCount) bytes")
    signing = SigningSeed(unchecked: Self.part(0, of: joined))
    box = BoxSeed(unchecked: Self.part(1, of: joined))
    transport = TransportPrivateKey(unchecked: Self.part(2, of: joined))
    storage = StorageKey(unchecked: Self.part(3, of: joined))
  }

  /// Returns the device's keys, which follow from the secrets.
  package borrowing func makeKeys() -> DeviceKeys {
    DeviceKeys(signingSeed: signing, boxSeed: box, transport: transport.copy())
  }

  /// Returns all four secrets in one piece of guarded memory.
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

  private static func part(_ number: Int, of joined: borrowing SecretBytes) -> SecretBytes {
    joined.withUnsafeBytes { joined in
      SecretBytes(count: secretKeyByteCount) { target in
        let start = number * secretKeyByteCount
        target.copyMemory(
          from: UnsafeRawBufferPointer(rebasing: joined[start..<(start + secretKeyByteCount)]))
      }
    }
  }
}
