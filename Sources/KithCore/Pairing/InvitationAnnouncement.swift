package import KithCrypto

/// An inviter's plaintext announcement to the LAN: an invitation can be joined at a port
/// (`Docs/Protocol/pairing.md`, "Announcement"). Nothing in it depends on the code or the account.
package struct InvitationAnnouncement: Hashable, Sendable {
  package static let byteCount = 32
  private static let magic = Array("kith-invite".utf8) + [1]

  /// Random for each invitation; two addresses with one id belong to one inviter.
  package var id: Digest128
  /// The port of the invitation's listener, never 0.
  package var port: UInt16

  package init(id: Digest128, port: UInt16) {
    self.id = id
    self.port = port
  }

  package init?(decoding bytes: [UInt8]) {
    guard bytes.count == Self.byteCount, bytes.starts(with: Self.magic),
      let id = try? Digest128(bytes[Self.magic.count..<Self.magic.count + Digest128.byteCount])
    else { return nil }
    let port = UInt16(bytes[28]) << 8 | UInt16(bytes[29])
    guard port > 0, bytes[30] == 0, bytes[31] == 0 else { return nil }
    self.init(id: id, port: port)
  }

  package func encoded() -> [UInt8] {
    Self.magic + id.bytes + [UInt8(port >> 8), UInt8(port & 0xff), 0, 0]
  }
}
