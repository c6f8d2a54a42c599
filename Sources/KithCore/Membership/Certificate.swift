package import KithCrypto

/// A device's keys and name; it enrols the device in an account (`Docs/Protocol.md`, "Membership").
package struct Certificate: Hashable, Sendable {
  package let device: DeviceID
  /// Epoch secrets are sealed to it.
  package let boxKey: BoxPublicKey
  /// The Noise static key.
  package let transportKey: TransportPublicKey
  /// The name for people (``isValidName(_:)``).
  package let name: String
  /// Milliseconds since 1970.
  package let issued: UInt64

  /// Makes a certificate; nil if the name is not valid.
  package init?(
    device: DeviceID, boxKey: BoxPublicKey, transportKey: TransportPublicKey, name: String,
    issued: UInt64
  ) {
    guard Self.isValidName(name) else { return nil }
    self.device = device
    self.boxKey = boxKey
    self.transportKey = transportKey
    self.name = name
    self.issued = issued
  }

  package init?(of keys: DeviceKeys, name: String, issued: UInt64) {
    self.init(
      device: keys.id, boxKey: keys.boxPublicKey, transportKey: keys.transportPublicKey,
      name: name, issued: issued)
  }

  /// Returns whether the text can name a device: 1 to 64 bytes of UTF-8, no control characters,
  /// line separators, direction marks, or characters without width. Otherwise names could differ
  /// invisibly.
  package static func isValidName(_ name: String) -> Bool {
    (1...MembershipLimits.nameBytes).contains(name.utf8.count)
      && name.unicodeScalars.allSatisfy { isAllowed($0.value) }
  }

  // Fixed ranges: Unicode's tables differ between versions, and peers must agree.
  private static func isAllowed(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0..<0x20, 0x7f...0x9f, 0xad, 0x34f, 0x61c, 0x115f...0x1160, 0x17b4...0x17b5,
      0x180b...0x180f, 0x200b...0x200f, 0x2028...0x202e, 0x2060...0x206f, 0x3164, 0xfeff, 0xffa0,
      0xfff0...0xfffb, 0xe0000...0xe0fff:
      false
    default: true
    }
  }

  func hasSameKeys(as other: Self) -> Bool {
    device == other.device && boxKey == other.boxKey && transportKey == other.transportKey
  }

  init(_ wire: WireCertificate) throws(RecordError) {
    guard
      let certificate = Self(
        device: try RecordBody.fixed(wire.device), boxKey: try RecordBody.fixed(wire.boxKey),
        transportKey: try RecordBody.fixed(wire.transportKey), name: wire.name,
        issued: wire.issued)
    else { throw .invalidName }
    self = certificate
  }

  var wire: WireCertificate {
    var wire = WireCertificate()
    wire.device = .init(device.bytes)
    wire.boxKey = .init(boxKey.bytes)
    wire.transportKey = .init(transportKey.bytes)
    wire.name = name
    wire.issued = issued
    return wire
  }
}
