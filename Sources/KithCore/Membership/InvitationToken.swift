package import KithCrypto

/// The error for a text that is not an invitation.
package enum InvitationTokenError: Error, Hashable, Sendable {
  /// The text does not begin with `kith1-`.
  case notAnInvitation
  /// A newer version of Kith made it.
  case unsupportedVersion
  /// The text has a character that no invitation has.
  case invalidCharacter(Character)
  /// Characters are missing, too many or wrong.
  case checksumMismatch
  /// The text is longer than an invitation can be.
  case tooLong
  /// The text is intact, but it has no port, or an address of a wrong form.
  case malformed
}

extension InvitationTokenError: CustomStringConvertible {
  /// The cause, as the end of a sentence.
  package var description: String {
    switch self {
    case .notAnInvitation: "it does not begin with kith1-"
    case .unsupportedVersion: "a newer version of Kith made it"
    case .invalidCharacter(let character):
      "no code has the character \(String(character).debugDescription)"
    case .checksumMismatch: "characters are missing, too many or wrong"
    case .tooLong: "it is too long"
    case .malformed: "it names a port or an address that cannot be"
    }
  }
}

/// The secret of an invitation, from which the handshake's pre-shared key is derived.
package struct InvitationSecret: SecretKey, ~Copyable {
  private let secret: SecretBytes

  /// Wraps 32 bytes whose number has been checked.
  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  /// Lends the bytes for the time of `body`; the pointer must not outlive it.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An inviter's addresses and port, with a secret that admits a joiner (`Docs/Protocol.md`, "Texts
/// for people").
///
/// Its text is `kith1-`, then lower-case Crockford base32 of: the version (1), the secret (32
/// bytes), the port (big-endian), the number of addresses, each address after its length, and 4
/// bytes of BLAKE2b-256 over `kith invitation v1`, a zero byte and all bytes before.
package final class InvitationToken: Sendable {
  /// The maximum number of addresses in an invitation.
  package static let maximumAddresses = 8
  /// The maximum number of bytes of an address.
  package static let maximumAddressBytes = 64
  /// The maximum number of characters of an invitation's text.
  package static let maximumCharacters = 1_024
  private static let prefix = "kith1-"
  private static let version: UInt8 = 1
  private static let checksumBytes = 4

  /// The port that the inviter listens on.
  package let port: UInt16
  /// The inviter's hosts, without the port, best first.
  package let addresses: [String]
  private let secret: InvitationSecret

  /// Makes an invitation. Throws ``InvitationTokenError/malformed`` if the port is 0, with more
  /// than 8 addresses, or if one is not 1 to 64 printable ASCII characters.
  package init(
    secret: consuming InvitationSecret, port: UInt16, addresses: [String]
  ) throws(InvitationTokenError) {
    guard port > 0, addresses.count <= Self.maximumAddresses,
      addresses.allSatisfy(Self.isValidAddress)
    else { throw .malformed }
    self.secret = secret
    self.port = port
    self.addresses = addresses
  }

  /// Reads a pasted text, ignoring case, white space, and hyphens after the prefix.
  package convenience init(text: String) throws(InvitationTokenError) {
    guard text.utf8.count <= 4 * Self.maximumCharacters else { throw .tooLong }
    let symbols = text.filter { !$0.isWhitespace }
    guard symbols.lowercased().hasPrefix(Self.prefix) else {
      throw Self.isNewer(symbols) ? .unsupportedVersion : .notAnInvitation
    }
    let payload = symbols.dropFirst(Self.prefix.count).filter { $0 != "-" }
    guard payload.count <= Self.maximumCharacters else { throw .tooLong }
    if let wrong = payload.first(where: { Crockford.value(of: $0) == nil }) {
      throw .invalidCharacter(wrong)
    }
    guard let bytes = Crockford.decode(payload), bytes.count > Self.checksumBytes else {
      throw .checksumMismatch
    }
    let content = Array(bytes.dropLast(Self.checksumBytes))
    guard constantTimeEquals(Self.checksum(content), Array(bytes.suffix(Self.checksumBytes)))
    else { throw .checksumMismatch }
    var reader = ByteReader(content)
    guard let version = reader.byte() else { throw .malformed }
    guard version == Self.version else { throw .unsupportedVersion }
    guard var secretBytes = reader.bytes(secretKeyByteCount),
      let secret = try? InvitationSecret(zeroing: &secretBytes),
      let high = reader.byte(), let low = reader.byte(), let count = reader.byte()
    else { throw .malformed }
    var addresses: [String] = []
    for _ in 0..<count {
      guard let length = reader.byte(), let address = reader.bytes(Int(length)),
        let text = String(validating: address, as: UTF8.self)
      else { throw .malformed }
      addresses.append(text)
    }
    guard reader.isAtEnd else { throw .malformed }
    try self.init(
      secret: secret, port: UInt16(high) << 8 | UInt16(low), addresses: addresses)
  }

  /// The line for the joiner. Any holder can ask to join.
  package var text: String {
    var content = [Self.version]
    secret.withUnsafeBytes { content.append(contentsOf: $0) }
    content += [UInt8(port >> 8), UInt8(port & 0xff), UInt8(addresses.count)]
    for address in addresses {
      content.append(UInt8(address.utf8.count))
      content += address.utf8
    }
    return Self.prefix + Crockford.encode(content + Self.checksum(content)).lowercased()
  }

  /// The pre-shared key of the pairing handshake: subkey 1 of the secret (`crypto_kdf`, context
  /// `KithPair`).
  package func presharedKey() -> PresharedKey {
    KeyDerivation.derive(1, context: "KithPair", from: secret)
  }

  private static func isValidAddress(_ address: String) -> Bool {
    (1...maximumAddressBytes).contains(address.utf8.count)
      && address.utf8.allSatisfy { (0x21...0x7e).contains($0) }
  }

  private static func isNewer(_ text: String) -> Bool {
    let lower = text.lowercased()
    guard lower.hasPrefix("kith"), let hyphen = lower.firstIndex(of: "-") else { return false }
    let number = lower[lower.index(lower.startIndex, offsetBy: 4)..<hyphen]
    return (UInt32(number) ?? 0) > version
  }

  private static func checksum(_ content: [UInt8]) -> [UInt8] {
    let digest = Blake2b.digest256(Array("kith invitation v1".utf8), [0], content)
    return Array(digest.bytes.prefix(checksumBytes))
  }
}

private struct ByteReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  var isAtEnd: Bool { rest.isEmpty }

  mutating func byte() -> UInt8? { rest.popFirst() }

  mutating func bytes(_ count: Int) -> [UInt8]? {
    guard rest.count >= count else { return nil }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }
}
