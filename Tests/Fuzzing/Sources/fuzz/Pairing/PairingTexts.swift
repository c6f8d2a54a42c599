@testable import KithCrypto

@testable import KithCore

/// Texts that people paste or type: a token, a code, a recovery key.
///
/// Each text that is read is written as a text that reads as the same.
enum PairingTexts {
  static func read(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let token = try? InvitationToken(text: text) {
      let again = try? InvitationToken(text: token.text)
      require(again?.text == token.text, "a token reads otherwise")
      require(
        again?.port == token.port && again?.addresses == token.addresses,
        "a token leads elsewhere")
      require(
        token.port > 0 && token.addresses.count <= InvitationToken.maximumAddresses,
        "a token beyond its limits")
    }
    if let code = try? PairingCode(text: text) {
      require((try? PairingCode(text: code.text))?.text == code.text, "a code reads otherwise")
    }
    if let key = try? RecoveryKey(text: text) {
      require(
        (try? RecoveryKey(text: key.text))?.text == key.text, "a recovery key reads otherwise")
    }
  }

  static var seeds: [(name: String, bytes: [UInt8])] {
    get throws {
      var entropy = SeededEntropy(seed: 8)
      let token = try InvitationToken(
        secret: InvitationSecret(random: &entropy), port: 4115,
        addresses: ["192.0.2.1", "fe80::1%eth0"])
      let code = CodeExchangeRun.codes[0].text
      let texts = [
        ("token", token.text), ("token cut", String(token.text.dropLast(9))),
        ("newer token", "kith2-0000"), ("code", code),
        ("code with spaces", code.replacing("-", with: " . ")), ("code in words", "OIL0-1234"),
        ("recovery key", RecoveryKey(entropy: &entropy).text),
      ]
      return texts.map { ("text " + $0.0, [4] + Array($0.1.utf8)) }
    }
  }
}
