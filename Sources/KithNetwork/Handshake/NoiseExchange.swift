internal import KithCore
internal import KithCrypto

/// The parameters of a handshake: `Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b`.
///
/// Its three messages are frames: the length as 2 bytes, big-endian, then the message. Payloads: an
/// encoded `Offer`; the listener's `Hello` with the chosen version; the dialler's `Hello` with the
/// same. The frames of ``MessageCodec`` follow, in both directions.
struct NoiseParameters: Sendable {
  /// The prologue of sessions: the ASCII bytes of `Kith/1`.
  static let sessionPrologue = Array("Kith/1".utf8)
  /// The prologue of pairings: the ASCII bytes of `kith-pair-1`.
  static let pairingPrologue = Array("kith-pair-1".utf8)
  /// The protocol's name.
  static let name = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"

  let prologue: [UInt8]
  let keys: DeviceKeys
  let entropy: SharedEntropy

  /// Starts a handshake under a pre-shared key.
  func start(_ role: HandshakeRole, psk: SharedPresharedKey) throws(NoiseError) -> NoiseExchange {
    let ephemeral = entropy.transportKey()
    return NoiseExchange(
      try HandshakeState(
        protocol: NoiseProtocol(Self.name), role: role, prologue: prologue,
        staticKey: keys.transport, ephemeral: ephemeral, psk: psk.key))
  }
}

/// A running handshake, by reference. Belongs to one channel's event loop.
final class NoiseExchange {
  private var state: HandshakeState?

  init(_ state: consuming HandshakeState) {
    self.state = consume state
  }

  /// The other side's static key, once it is known.
  var remoteStaticKey: TransportPublicKey? { state?.remoteStaticKey }

  /// The session's identifier, once the handshake is finished.
  var hash: [UInt8] { state?.handshakeHash ?? [] }

  /// Writes the next message.
  func write(_ payload: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let message = try state?.writeMessage(payload: payload) else { throw .wrongStage }
    return message
  }

  /// Reads the next message and returns its payload.
  func read(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let payload = try state?.readMessage(message) else { throw .wrongStage }
    return payload
  }

  /// Ends the handshake, and returns the two directions of the transport.
  func split() throws(NoiseError) -> TransportPair {
    guard let state = state.take() else { throw .wrongStage }
    return try state.split()
  }
}
