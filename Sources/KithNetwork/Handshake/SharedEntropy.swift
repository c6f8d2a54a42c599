internal import KithCrypto
internal import Synchronization

/// The source of randomness that was handed in, for all event loops.
final class SharedEntropy: Sendable {
  private let source: Mutex<any Entropy>

  init(_ source: any Entropy) {
    self.source = Mutex(source)
  }

  /// A key for one handshake.
  func transportKey() -> TransportPrivateKey {
    source.withLock { TransportPrivateKey(random: &$0) }
  }

  /// Lends the source for the time of `body`.
  func use<R: ~Copyable & Sendable, E: Error>(
    _ body: (inout any Entropy) throws(E) -> R
  ) throws(E) -> R {
    try source.withLock { source throws(E) in try body(&source) }
  }

  /// A number from 0 up to 1.
  func fraction() -> Double {
    let bytes = source.withLock { $0.bytes(6) }
    return Double(bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }) / Double(1 << 48)
  }
}
