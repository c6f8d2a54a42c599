package enum CryptoError: Error, Equatable, Sendable {
  case wrongLength(expected: Int, actual: Int)
  /// A public key is of low order, which would make a shared secret public, or a CPace share or
  /// scalar is invalid.
  case invalidKey
  /// The key or nonce is wrong, or the bytes were altered.
  case authenticationFailed
  case outOfMemory
  case parameterOutOfBounds(name: String, allowed: ClosedRange<Int>, actual: Int)
}
