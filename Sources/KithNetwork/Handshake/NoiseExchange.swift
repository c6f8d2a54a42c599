internal import KithCore
internal import KithCrypto

/// The parameters of a handshake (`Docs/Protocol.md`, "Handshake").
struct NoiseParameters: Sendable {
  static let sessionPrologue = Array("Kith/1".utf8)
  static let pairingPrologue = Array("kith-pair-1".utf8)
  static let name = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"

  var prologue: [UInt8]
  let keys: DeviceKeys
  let entropy: SharedEntropy

  func start(_ role: HandshakeRole, psk: SharedPresharedKey) throws(NoiseError) -> NoiseExchange {
    let ephemeral = entropy.use { TransportPrivateKey(random: &$0) }
    return NoiseExchange(
      try HandshakeState(
        protocol: NoiseProtocol(Self.name), role: role, prologue: prologue,
        staticKey: keys.transport, ephemeral: ephemeral, psk: psk.key))
  }
}

/// A running handshake. Belongs to one channel's event loop.
final class NoiseExchange {
  private var state: HandshakeState?

  init(_ state: consuming HandshakeState) {
    self.state = consume state
  }

  /// Nil until it is known.
  var remoteStaticKey: TransportPublicKey? { state?.remoteStaticKey }

  func write(_ payload: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let message = try state?.writeMessage(payload: payload) else { throw .wrongStage }
    return message
  }

  func read(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let payload = try state?.readMessage(message) else { throw .wrongStage }
    return payload
  }

  /// Ends the handshake.
  func split() throws(NoiseError) -> TransportPair {
    guard let state = state.take() else { throw .wrongStage }
    return try state.split()
  }
}
