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
    var lastPosition = -1
    for modifier in modifiers.split(separator: "+", omittingEmptySubsequences: false) {
      guard modifier.hasPrefix("psk"), modifier.utf8.count == 4,
        let position = modifier.last?.wholeNumberValue, position > lastPosition,
        pattern.addPresharedKey(at: position)
      else { return nil }
      lastPosition = position
    }
    return pattern
  }
}

/// A step of a handshake message (Noise, section 7.1).
enum HandshakeToken: String, Sendable {
  case e, s, ee, es, se, ss, psk
}

package enum HandshakeRole: Sendable {
  case initiator
  case responder
}

/// The messages of a handshake (Noise, sections 7.4 and 7.5), the initiator's first.
struct HandshakePattern: Sendable {
  /// Whether the responder knows the initiator's static key beforehand.
  let initiatorIsKnown: Bool
  /// Whether the initiator knows the responder's static key beforehand.
  let responderIsKnown: Bool
  /// The tokens of each message; the sides take turns.
  private(set) var messages: [[HandshakeToken]]

  init?(name: some StringProtocol) {
    guard let text = Self.fundamental[String(name)] else { return nil }
    initiatorIsKnown = name.first == "K"
    responderIsKnown = name.last == "K" || name == "N" || name == "X"
    messages = text.split(separator: ",").map { message in
      message.split(separator: " ").compactMap { HandshakeToken(rawValue: String($0)) }
    }
  }

  /// Whether data flows only to the responder.
  var isOneWay: Bool { messages.count == 1 }

  var presharedKeyCount: Int { messages.joined().count { $0 == .psk } }

  /// Adds the modifier `psk0` (before the first message) or `pskN` (after the Nth).
  mutating func addPresharedKey(at position: Int) -> Bool {
    guard (0...messages.count).contains(position) else { return false }
    if position == 0 {
      messages[0].insert(.psk, at: 0)
    } else {
      messages[position - 1].append(.psk)
    }
    return true
  }

  func usesStaticKey(of role: HandshakeRole) -> Bool {
    isKnown(role) || transmitsStaticKey(of: role)
  }

  /// Whether the other side knows this role's static key beforehand.
  func isKnown(_ role: HandshakeRole) -> Bool {
    role == .initiator ? initiatorIsKnown : responderIsKnown
  }

  private func transmitsStaticKey(of role: HandshakeRole) -> Bool {
    messages.indices.contains { index in
      (index % 2 == 0) == (role == .initiator) && messages[index].contains(.s)
    }
  }

  private static let fundamental = [
    "N": "e es",
    "K": "e es ss",
    "X": "e es s ss",
    "NN": "e,e ee",
    "NK": "e es,e ee",
    "NX": "e,e ee s es",
    "KN": "e,e ee se",
    "KK": "e es ss,e ee se",
    "KX": "e,e ee se s es",
    "XN": "e,e ee,s se",
    "XK": "e es,e ee,s se",
    "XX": "e,e ee s es,s se",
    "IN": "e s,e ee se",
    "IK": "e es s ss,e ee se",
    "IX": "e s,e ee se s es",
  ]
}

package enum NoiseError: Error, Equatable, Sendable {
  case unsupportedProtocol(String)
  /// The pattern needs a static key of this side.
  case missingStaticKey
  /// The pattern needs the other side's static key beforehand.
  case missingRemoteStaticKey
  /// The pattern transmits the other side's static key, but the caller passed one.
  case unexpectedRemoteStaticKey
  case wrongPresharedKeyCount(expected: Int, actual: Int)
  /// A message was written when one was to be read, or the reverse.
  case outOfTurn
  /// The handshake is finished; or, on splitting, is not.
  case wrongStage
  case failedBefore
  /// Longer than 65,535 bytes.
  case messageTooLong
  /// The message ends before all parts of its pattern.
  case messageTooShort
  /// The key or order is wrong, or the bytes were altered.
  case authenticationFailed
  /// The public key is of low order: the shared secret would be zero.
  case invalidPublicKey
  /// The counter is used up, or the pattern does not let this side send.
  case nonceExhausted
}
