/// The errors of this module's cryptographic operations.
package enum CryptoError: Error, Equatable, Sendable {
  /// A fixed-size input has the wrong size.
  case wrongLength(expected: Int, actual: Int)
  /// A public key is of low order, so a shared secret made with it would be public.
  case invalidKey
  /// A box does not open: wrong key, wrong nonce, or altered bytes.
  case authenticationFailed
  /// An input is longer than its algorithm can take.
  case messageTooLong
  /// A nonce counter has reached its end; another message would reuse a nonce.
  case nonceExhausted
  /// The system could not provide the memory for an operation.
  case outOfMemory
  /// An Argon2 parameter lies outside the bounds that this module accepts.
  case parameterOutOfBounds(name: String, allowed: ClosedRange<Int>, actual: Int)
}
