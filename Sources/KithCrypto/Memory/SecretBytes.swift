import CSodium

/// Secret bytes between guard pages: locked against swapping, left out of core dumps, read-only
/// once initialised, zeroed at the end.
///
/// For long-lived keys, not for data: each value takes a locked page and a few system calls.
package struct SecretBytes: ~Copyable, @unchecked Sendable {
  // Unchecked: this noncopyable value owns the pointer alone, and the kernel write-protects its
  // memory from the end of `init` until `deinit`.
  private let base: UnsafeMutableRawPointer

  package let count: Int

  /// Lets `initialize` write zeroed memory, then write-protects it. Ends the process if no memory
  /// is available.
  package init<E: Error>(
    count: Int, _ initialize: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    precondition(count >= 0, "a secret cannot have \(count) bytes")
    Sodium.start()
    guard let base = sodium_malloc(count) else {
      fatalError("no memory for \(count) secret bytes; is RLIMIT_AS or vm.max_map_count reached?")
    }
    sodium_memzero(base, count)
    do throws(E) {
      try initialize(UnsafeMutableRawBufferPointer(start: base, count: count))
    } catch {
      sodium_free(base)
      throw error
    }
    _ = sodium_mprotect_readonly(base)
    self.base = base
    self.count = count
  }

  /// Copies the bytes and zeroes the source's storage; an earlier copy of the source keeps its
  /// bytes.
  package init(zeroing bytes: inout [UInt8]) {
    self.init(count: bytes.count) { target in
      bytes.withUnsafeBytes { target.copyMemory(from: $0) }
    }
    Sodium.zero(&bytes)
  }

  package init(random count: Int, using entropy: inout some Entropy) {
    self.init(count: count) { entropy.fill($0) }
  }

  deinit { sodium_free(base) }

  /// The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  package borrowing func copy() -> SecretBytes {
    withUnsafeBytes { source in
      SecretBytes(count: count) { $0.copyMemory(from: source) }
    }
  }
}
