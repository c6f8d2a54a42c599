package import KithCrypto

package enum InvitationTokenError: Error, Hashable, Sendable {
  /// The text lacks the prefix `kith1-`.
  case notAnInvitation
  /// A newer version of Kith made it.
  case unsupportedVersion
  case invalidCharacter(Character)
  /// Characters are missing, too many or wrong.
  case checksumMismatch
  case tooLong
  /// The text is intact, but its content is not valid.
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

/// The handshake's pre-shared key is derived from it.
package struct InvitationSecret: SecretKey, ~Copyable {
  private let secret: SecretBytes

  /// Wraps 32 bytes; the caller has checked their number.
  package init(unchecked secret: consuming SecretBytes) { self.secret = secret }

  /// Lends the bytes to `body`; the pointer must not outlive it.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R { try secret.withUnsafeBytes(body) }
}

/// An inviter's addresses and port, with a secret that admits a joiner (`Docs/Protocol.md`, "Texts
/// for people").
package final class InvitationToken: Sendable {
  package static let maximumAddresses = 8
  package static let maximumAddressBytes = 64
  /// The most characters of the text after the prefix, without separators.
  package static let maximumCharacters = 1_024
  private static let prefix = "kith1-"
  private static let version: UInt8 = 1
  private static let checksumBytes = 4

  package let port: UInt16
  /// Hosts without the port, best first.
  package let addresses: [String]
  private let secret: InvitationSecret

  /// Throws ``InvitationTokenError/malformed`` if the port or an address is not valid.
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

  /// The text for the joiner. Any holder can ask to join.
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
