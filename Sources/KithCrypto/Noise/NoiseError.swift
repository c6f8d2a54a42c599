/// The errors of a Noise handshake or its transport.
package enum NoiseError: Error, Equatable, Sendable {
  /// The protocol name is not one that this module speaks.
  case unsupportedProtocol(String)
  /// The pattern needs this role's static key, and none was given.
  case missingStaticKey
  /// The pattern needs the other side's static key beforehand, and none was given.
  case missingRemoteStaticKey
  /// The other side's static key was given, but the pattern transmits it.
  case unexpectedRemoteStaticKey
  /// The pattern needs another number of pre-shared keys.
  case wrongPresharedKeyCount(expected: Int, actual: Int)
  /// A message was written when one was to be read, or the other way round.
  case outOfTurn
  /// All handshake messages have been exchanged; or, on splitting, not yet.
  case wrongStage
  /// An earlier message failed, which ended the handshake.
  case failedBefore
  /// A message would be, or is, longer than 65,535 bytes.
  case messageTooLong
  /// A message ends before all parts of its pattern.
  case messageTooShort
  /// A message does not decrypt: wrong key, wrong order, or altered bytes.
  case authenticationFailed
  /// A public key is of low order: the shared secret would be zero.
  case invalidPublicKey
  /// The nonce counter is used up, or the pattern does not let this side send.
  case nonceExhausted
}
