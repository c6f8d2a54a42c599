import KithCrypto

extension Passphrase: ExpressibleByStringLiteral {
  convenience init(stringLiteral text: String) {
    var bytes = Array(text.utf8)
    self.init(zeroing: &bytes)
  }
}
