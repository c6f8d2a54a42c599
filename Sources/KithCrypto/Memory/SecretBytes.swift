import CSodium

/// Secret bytes between guard pages: locked against swapping, left out of core dumps, read-only
/// once initialised, zeroed at the end.
///
/// Each value takes a locked page and a few system calls: use it for long-lived keys, not for data.
package struct SecretBytes: ~Copyable, @unchecked Sendable {
  // Unchecked: the pointer has one owner, this noncopyable value, and the kernel write-protects its
  // memory from the end of `init` until `deinit`.
  private let base: UnsafeMutableRawPointer

  /// The number of bytes.
  package let count: Int

  /// Allocates `count` zero bytes, lets `initialize` write them, and write-protects them.
  ///
  /// Ends the process if the system has no memory for it.
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

  /// Copies the bytes in and zeroes the source.
  ///
  /// Only the storage of `bytes` is zeroed: an earlier copy keeps its bytes.
  package init(zeroing bytes: inout [UInt8]) {
    self.init(count: bytes.count) { target in
      bytes.withUnsafeBytes { target.copyMemory(from: $0) }
    }
    Sodium.zero(&bytes)
  }

  /// Draws `count` bytes from `entropy`.
  package init(random count: Int, using entropy: inout some Entropy) {
    self.init(count: count) { entropy.fill($0) }
  }

  deinit { sodium_free(base) }

  /// Calls `body` with the bytes. The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  /// Returns another secret with the same bytes, in its own memory.
  package borrowing func copy() -> SecretBytes {
    withUnsafeBytes { source in
      SecretBytes(count: count) { $0.copyMemory(from: source) }
    }
  }
}
