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
    signing = SigningSeed(unchecked: Self.part(0, of: joined))
    box = BoxSeed(unchecked: Self.part(1, of: joined))
    transport = TransportPrivateKey(unchecked: Self.part(2, of: joined))
    storage = StorageKey(unchecked: Self.part(3, of: joined))
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
