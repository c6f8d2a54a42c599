import Glibc
import KithCrypto

/// A secret in guarded memory. It never shows in descriptions.
package final class SecretText: Sendable, CustomStringConvertible, CustomReflectable {
  private let bytes: SecretBytes

  /// Copies bytes; the source keeps its own.
  init(_ source: some Collection<UInt8>) {
    bytes = SecretBytes(count: source.count) { $0.copyBytes(from: source) }
  }

  /// The pointer is valid only during the call.
  func withUnsafeBytes<Value, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try bytes.withUnsafeBytes(body)
  }

  /// Says that it is a secret.
  package var description: String { "a secret" }
  /// Hides the bytes from `dump` and debuggers' summaries.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// A copy that ends with a zero, for C. It is overwritten after the call.
  func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { copy in
      copy.initialize(repeating: 0)
      bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(copy).copyMemory(from: $0) }
      defer { if let base = copy.baseAddress { explicit_bzero(base, copy.count) } }
      return copy.baseAddress.map { body(UnsafePointer($0)) } ?? body("")
    }
  }
}
