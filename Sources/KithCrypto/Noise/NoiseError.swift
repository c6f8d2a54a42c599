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
  /// Of low order: the shared secret would be zero.
  case invalidPublicKey
  /// The counter is used up, or the pattern does not let this side send.
  case nonceExhausted
}
