import Glibc

/// A secret's bytes, overwritten with zeros at the end of its life. It never shows in descriptions.
package final class SecretText: @unchecked Sendable, CustomStringConvertible, CustomReflectable {
  // Unchecked: the memory is written only in `init` and `deinit`.
  private let bytes: UnsafeMutableRawBufferPointer

  /// Copies bytes; the source keeps its own.
  init(_ source: some Collection<UInt8>) {
    bytes = .allocate(byteCount: source.count, alignment: 1)
    bytes.copyBytes(from: source)
  }

  deinit {
    if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
    bytes.deallocate()
  }

  /// The pointer is valid only during the call.
  func withUnsafeBytes<Value, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try body(UnsafeRawBufferPointer(bytes))
  }

  /// Says that it is a secret.
  package var description: String { "a secret" }
  /// Hides the bytes from `dump` and debuggers' summaries.
  package var customMirror: Mirror { Mirror(self, children: []) }

  /// A copy that ends with a zero, for C. It is overwritten after the call.
  func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: bytes.count + 1) { copy in
      copy.initialize(repeating: 0)
      UnsafeMutableRawBufferPointer(copy).copyMemory(from: UnsafeRawBufferPointer(bytes))
      defer { if let base = copy.baseAddress { explicit_bzero(base, copy.count) } }
      return copy.baseAddress.map { body(UnsafePointer($0)) } ?? body("")
    }
  }
}
