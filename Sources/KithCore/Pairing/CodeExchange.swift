package import KithCrypto

/// The exchange that turns a pairing code into a key: CPace, with the joiner's proof first
/// (`Docs/Protocol/pairing.md`, "Code").
///
/// Its four messages have fixed lengths. None is computed from the account, and none before the
/// joiner's proof reveals anything about the code:
///
/// | from | message | bytes |
/// | --- | --- | --- |
/// | joiner | hello: version (1), 16 random bytes | 17 |
/// | inviter | offer: 16 random bytes, its share | 48 |
/// | joiner | proof: its share, its proof | 64 |
/// | inviter | confirmation: its proof | 32 |
package enum CodeExchange {
  package static let version: UInt8 = 1
  package static let helloBytes = 17
  package static let offerBytes = 48
  package static let proofBytes = 64
  package static let confirmationBytes = 32
  static let nonceBytes = 16
  static let name = Array("kith-pair-1".utf8)

  struct Transcript {
    var session: [UInt8]
    var inviterShare: CPaceShare
    var joinerShare: CPaceShare

    var bytes: [UInt8] {
      name + [version] + session + inviterShare.bytes + joinerShare.bytes
    }

    func joinerProof(under key: borrowing CPaceKey) -> Digest256 {
      key.proof(of: Array("joiner proof".utf8) + bytes)
    }

    func inviterProof(under key: borrowing CPaceKey) -> Digest256 {
      key.proof(of: Array("inviter proof".utf8) + bytes)
    }

    func agreement(under key: borrowing CPaceKey) -> CodeAgreement {
      let confirmation = inviterProof(under: key).bytes
      return CodeAgreement(
        presharedKey: key.derive(Array("noise psk".utf8) + bytes),
        prologue: bytes + joinerProof(under: key).bytes + confirmation,
        confirmation: confirmation)
    }
  }

  static func side(
    _ code: PairingCode, session: [UInt8], entropy: inout some Entropy
  ) throws(CodeExchangeError) -> CPace {
    do {
      return try CPace(
        password: code.password,
        channel: CPace.channel(name, Array("inviter".utf8), Array("joiner".utf8)),
        session: session, scalar: CPaceScalar(random: &entropy))
    } catch {
      throw .malformed
    }
  }

  static func key(
    _ side: consuming CPace, _ setting: CPaceSetting, _ share: CPaceShare
  ) throws(CodeExchangeError) -> CPaceKey {
    do {
      return try side.key(setting: setting, remote: share)
    } catch {
      throw .wrongProof
    }
  }
}

package enum CodeExchangeError: Error, Hashable, Sendable {
  /// A message has a wrong length or version, or is out of turn; it was no guess of the code.
  case malformed
  /// The other side lacks the code, or its share is no element of the group.
  case wrongProof
}

/// The result of an exchange, the same on both sides.
package struct CodeAgreement: ~Copyable, Sendable {
  /// The pre-shared key of the handshake that follows.
  package let presharedKey: PresharedKey
  /// The prologue of the same handshake.
  package let prologue: [UInt8]
  package let confirmation: [UInt8]
}

/// The inviter's side of one exchange.
package struct CodeInviter: ~Copyable, Sendable {
  private let code: PairingCode
  private var session: [UInt8] = []
  private var side: CPace?

  package init(code: PairingCode) {
    self.code = code
  }

  /// Answers a joiner's hello, or throws `malformed`.
  package mutating func offer(
    to hello: [UInt8], entropy: inout some Entropy
  ) throws(CodeExchangeError) -> [UInt8] {
    guard session.isEmpty, hello.count == CodeExchange.helloBytes,
      hello.first == CodeExchange.version
    else { throw .malformed }
    let nonce = entropy.bytes(CodeExchange.nonceBytes)
    session = nonce + hello.dropFirst()
    let side = try CodeExchange.side(code, session: session, entropy: &entropy)
    let share = side.share
    self.side = consume side
    return nonce + share.bytes
  }

  /// Checks the joiner's proof. Call it once: another guess needs another exchange.
  ///
  /// - Throws: `wrongProof`, which counts as a guess of the code, or `malformed`, which does not.
  package mutating func confirm(_ message: [UInt8]) throws(CodeExchangeError) -> CodeAgreement {
    guard let side = side.take(), message.count == CodeExchange.proofBytes,
      let share = try? CPaceShare(message.prefix(CPaceShare.byteCount))
    else { throw .malformed }
    let transcript = CodeExchange.Transcript(
      session: session, inviterShare: side.share, joinerShare: share)
    let key = try CodeExchange.key(side, .initiator, share)
    let expected = transcript.joinerProof(under: key)
    guard constantTimeEquals(expected.bytes, Array(message.suffix(Digest256.byteCount))) else {
      throw .wrongProof
    }
    return transcript.agreement(under: key)
  }
}

/// The joiner's side of one exchange.
package struct CodeJoiner: ~Copyable, Sendable {
  private let code: PairingCode
  private let nonce: [UInt8]
  private var agreement: CodeAgreement?

  package init(code: PairingCode, entropy: inout some Entropy) {
    self.code = code
    nonce = entropy.bytes(CodeExchange.nonceBytes)
  }

  package var hello: [UInt8] { [CodeExchange.version] + nonce }

  /// Answers an offer with a proof, by which an inviter without the code gets one guess.
  ///
  /// - Throws: `malformed`; then nothing was revealed.
  package mutating func prove(
    to offer: [UInt8], entropy: inout some Entropy
  ) throws(CodeExchangeError) -> [UInt8] {
    guard agreement == nil, offer.count == CodeExchange.offerBytes,
      let share = try? CPaceShare(offer.suffix(CPaceShare.byteCount))
    else { throw .malformed }
    let session = Array(offer.prefix(CodeExchange.nonceBytes)) + nonce
    let side = try CodeExchange.side(code, session: session, entropy: &entropy)
    let transcript = CodeExchange.Transcript(
      session: session, inviterShare: share, joinerShare: side.share)
    let key: CPaceKey
    do {
      key = try CodeExchange.key(side, .responder, share)
    } catch {
      throw .malformed
    }
    agreement = transcript.agreement(under: key)
    return transcript.joinerShare.bytes + transcript.joinerProof(under: key).bytes
  }

  /// Checks the inviter's confirmation.
  ///
  /// - Throws: `wrongProof` if the inviter lacks the code, or `malformed`.
  package mutating func finish(_ confirmation: [UInt8]) throws(CodeExchangeError) -> CodeAgreement {
    guard let agreement = agreement.take(),
      confirmation.count == CodeExchange.confirmationBytes
    else { throw .malformed }
    guard constantTimeEquals(agreement.confirmation, confirmation) else { throw .wrongProof }
    return agreement
  }
}
