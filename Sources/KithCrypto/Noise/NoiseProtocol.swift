/// A Noise protocol by name, `Noise_<pattern><modifiers>_25519_ChaChaPoly_BLAKE2b`: the fundamental
/// patterns with `psk` modifiers.
package struct NoiseProtocol: Sendable {
  /// The full name, which both sides mix in.
  package let name: String

  let pattern: HandshakePattern

  /// Throws `unsupportedProtocol` if the name is not supported.
  package init(_ name: String) throws(NoiseError) {
    guard let pattern = Self.parse(name) else { throw .unsupportedProtocol(name) }
    self.name = name
    self.pattern = pattern
  }

  package var presharedKeyCount: Int { pattern.presharedKeyCount }

  private static func parse(_ name: String) -> HandshakePattern? {
    let fields = name.split(separator: "_", omittingEmptySubsequences: false)
    guard fields.count == 5, fields[0] == "Noise",
      fields[2...].elementsEqual(["25519", "ChaChaPoly", "BLAKE2b"])
    else { return nil }
    let base = fields[1].prefix { $0.isUppercase }
    guard var pattern = HandshakePattern(name: base) else { return nil }
    let modifiers = fields[1].dropFirst(base.count)
    guard !modifiers.isEmpty else { return pattern }
    // Ascending, so that one protocol has one name.
    var lastPlace = -1
    for modifier in modifiers.split(separator: "+", omittingEmptySubsequences: false) {
      guard modifier.hasPrefix("psk"), modifier.utf8.count == 4,
        let place = modifier.last?.wholeNumberValue, place > lastPlace,
        pattern.addPresharedKey(at: place)
      else { return nil }
      lastPlace = place
    }
    return pattern
  }
}
