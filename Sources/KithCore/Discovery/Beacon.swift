package import KithCrypto

/// A device's announcement on a link, so that members dial it: 160 bytes that look random without
/// the epoch's beacon key (`Docs/Protocol/discovery.md`, "Beacons").
///
/// It is also signed: a former holder of the key could announce another device.
package struct Beacon: Hashable, Sendable {
  package static let byteCount = 160

  private static let version: UInt8 = 1
  private static let domain = Array("kith beacon v1\0".utf8)
  /// Version, device, port, boot, counter and zeroes; the signature follows.
  private static let bodyBytes = 56

  package var device: DeviceID
  /// Its TCP port, never 0.
  package var port: UInt16
  /// Random, drawn when the device's node started.
  package var boot: UInt64
  /// Rises with every beacon of one boot.
  package var counter: UInt64

  package init(device: DeviceID, port: UInt16, boot: UInt64, counter: UInt64) {
    self.device = device
    self.port = port
    self.boot = boot
    self.counter = counter
  }

  /// Returns the bytes to send: signed for the account, sealed under `epoch`. A `nonce` is random
  /// and used once.
  package func sealed(
    account: AccountID, key: borrowing SigningKey, epoch: EpochKeys, nonce: BoxNonce
  ) -> [UInt8] {
    let body = body
    let signature = key.sign(Self.signedBytes(account, body))
    return epoch.beaconKey.seal(body + signature.bytes, nonce: nonce)
  }

  private var body: [UInt8] {
    var bytes = [Self.version]
    bytes.reserveCapacity(Self.bodyBytes)
    bytes += device.bytes
    withUnsafeBytes(of: port.bigEndian) { bytes += $0 }
    withUnsafeBytes(of: boot.bigEndian) { bytes += $0 }
    withUnsafeBytes(of: counter.bigEndian) { bytes += $0 }
    return bytes + [UInt8](repeating: 0, count: Self.bodyBytes - bytes.count)
  }

  fileprivate static func signedBytes(_ account: AccountID, _ body: [UInt8]) -> [UInt8] {
    domain + account.bytes + body
  }
}

/// An opened beacon; its signature is not checked yet.
struct OpenedBeacon {
  let beacon: Beacon
  private let body: [UInt8]
  private let signature: Signature

  /// Opens a datagram; nil if it was sealed with another key, or its version is unknown.
  ///
  /// - Complexity: one Poly1305 over 136 bytes.
  init?(_ sealed: [UInt8], epoch: EpochKeys) {
    guard sealed.count == Beacon.byteCount, let plaintext = try? epoch.beaconKey.open(sealed),
      let (beacon, signature) = Beacon.read(plaintext)
    else { return nil }
    self.beacon = beacon
    self.signature = signature
    body = Array(plaintext.prefix(plaintext.count - Signature.byteCount))
  }

  /// Returns whether the named device signed it.
  ///
  /// - Complexity: one Ed25519 verification.
  func isSigned(in account: AccountID) -> Bool {
    beacon.device.isValid(signature, for: Beacon.signedBytes(account, body))
  }
}

extension Beacon {
  /// The zeroes are reserved and are not checked.
  fileprivate static func read(_ plaintext: [UInt8]) -> (Beacon, Signature)? {
    func number(_ range: Range<Int>) -> UInt64 {
      plaintext[range].reduce(0) { $0 << 8 | UInt64($1) }
    }
    guard plaintext.count == bodyBytes + Signature.byteCount, plaintext[0] == version,
      let device = try? DeviceID(plaintext[1..<33]),
      let signature = try? Signature(plaintext[bodyBytes...])
    else { return nil }
    let port = UInt16(truncatingIfNeeded: number(33..<35))
    guard port != 0 else { return nil }
    return (
      Beacon(device: device, port: port, boot: number(35..<43), counter: number(43..<51)), signature
    )
  }
}
