internal import KithCrypto
internal import Synchronization

/// Shared by all event loops.
final class SharedEntropy: Sendable {
  private let source: Mutex<any Entropy>

  init(_ source: any Entropy) {
    self.source = Mutex(source)
  }

  func use<R: ~Copyable & Sendable, E: Error>(
    _ body: (inout any Entropy) throws(E) -> R
  ) throws(E) -> R {
    try source.withLock { source throws(E) in try body(&source) }
  }

  /// From 0 up to 1.
  func fraction() -> Double { Double(number(ofBytes: 6)) / Double(1 << 48) }

  func number() -> UInt64 { number(ofBytes: 8) }

  private func number(ofBytes count: Int) -> UInt64 {
    source.withLock { $0.bytes(count) }.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
