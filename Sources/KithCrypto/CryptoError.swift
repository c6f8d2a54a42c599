/// What the cryptographic operations of this module refuse.
public enum CryptoError: Error, Equatable, Sendable {
  /// A fixed-size input has another size than its type demands.
  case wrongLength(expected: Int, actual: Int)
  /// A public key is of low order, so that a shared secret with it would be known to all.
  case invalidKey
  /// A box does not open: wrong key, wrong nonce, or altered bytes.
  case authenticationFailed
  /// An input is longer than its algorithm can take.
  case messageTooLong
  /// A nonce counter has reached its end; another message would repeat a nonce.
  case nonceExhausted
  /// The memory that an operation asked for could not be had.
  case outOfMemory
  /// An Argon2 parameter lies outside the bounds that this module accepts.
  case parameterOutOfBounds(name: String, allowed: ClosedRange<Int>, actual: Int)
}
