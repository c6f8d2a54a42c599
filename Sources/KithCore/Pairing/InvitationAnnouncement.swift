package import KithCrypto

/// An inviter's announcement to the LAN: an invitation can be joined at a port. It is plaintext,
/// and nothing in it depends on the code or the account.
///
/// | bytes | content |
/// | --- | --- |
/// | 11 | `kith-invite` in ASCII |
/// | 1 | the version, 1 |
/// | 16 | random for each invitation: two addresses may belong to one inviter |
/// | 2 | the port, big-endian |
/// | 2 | zero |
package struct InvitationAnnouncement: Hashable, Sendable {
  /// The number of bytes of an announcement.
  package static let byteCount = 32
  private static let magic = Array("kith-invite".utf8) + [1]

  /// The id of the invitation.
  package var id: Digest128
  /// The port of the invitation's listener, never 0.
  package var port: UInt16

  /// Makes an announcement.
  package init(id: Digest128, port: UInt16) {
    self.id = id
    self.port = port
  }

  /// Reads an announcement; nil if the bytes are not one.
  package init?(decoding bytes: [UInt8]) {
    guard bytes.count == Self.byteCount, bytes.starts(with: Self.magic),
      let id = try? Digest128(bytes[Self.magic.count..<Self.magic.count + Digest128.byteCount])
    else { return nil }
    let port = UInt16(bytes[28]) << 8 | UInt16(bytes[29])
    guard port > 0, bytes[30] == 0, bytes[31] == 0 else { return nil }
    self.init(id: id, port: port)
  }

  /// The announcement's bytes.
  package func encoded() -> [UInt8] {
    Self.magic + id.bytes + [UInt8(port >> 8), UInt8(port & 0xff), 0, 0]
  }
}
