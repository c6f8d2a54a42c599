public import KithCore
public import KithCrypto

/// What makes a device this device: four secrets of 32 bytes, drawn once.
public struct DeviceSecrets: ~Copyable, Sendable {
  /// The seed of the key that signs.
  let signing: SigningSeed
  /// The seed of the key that opens boxes.
  let box: BoxSeed
  /// The Noise static key.
  let transport: TransportPrivateKey
  /// Seals what lies on this device's disk.
  let storage: StorageKey

  /// The bytes of all four, one after another.
  static let byteCount = 4 * secretKeyByteCount

  /// Draws new secrets.
  public init(random entropy: inout some Entropy) {
    signing = SigningSeed(random: &entropy)
    box = BoxSeed(random: &entropy)
    transport = TransportPrivateKey(random: &entropy)
    storage = StorageKey(random: &entropy)
  }

  /// Reads what ``joined()`` wrote; the number of bytes must be right.
  init(joined: borrowing SecretBytes) {
    precondition(joined.count == Self.byteCount, "device secrets have \(Self.byteCount) bytes")
    signing = SigningSeed(unchecked: Self.part(0, of: joined))
    box = BoxSeed(unchecked: Self.part(1, of: joined))
    transport = TransportPrivateKey(unchecked: Self.part(2, of: joined))
    storage = StorageKey(unchecked: Self.part(3, of: joined))
  }

  /// The device's keys, which the secrets determine.
  public borrowing func makeKeys() -> DeviceKeys {
    DeviceKeys(signingSeed: signing, boxSeed: box, transport: transport.copy())
  }

  /// All four in one piece of guarded memory.
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
