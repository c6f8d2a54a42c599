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
  mutating func addPresharedKey(at place: Int) -> Bool {
    guard (0...messages.count).contains(place) else { return false }
    if place == 0 {
      messages[0].insert(.psk, at: 0)
    } else {
      messages[place - 1].append(.psk)
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
