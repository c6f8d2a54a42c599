import CSodium

/// Writable memory between guard pages, locked against swapping, zeroed when freed.
///
/// A handshake has one for all its secrets, because an allocation costs several system calls.
struct GuardedBuffer: ~Copyable, @unchecked Sendable {
  // Unchecked: this noncopyable value owns the pointer alone, and only exclusive (`mutating`)
  // access writes.
  private let base: UnsafeMutableRawPointer
  let count: Int

  init(count: Int) {
    Sodium.start()
    guard let base = sodium_malloc(count) else {
      fatalError("no memory for \(count) guarded bytes; is RLIMIT_AS or vm.max_map_count reached?")
    }
    sodium_memzero(base, count)
    self.base = base
    self.count = count
  }

  deinit { sodium_free(base) }

  /// From now on the kernel prevents writing.
  borrowing func protect() { _ = sodium_mprotect_readonly(base) }

  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  mutating func withUnsafeMutableBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeMutableRawBufferPointer(start: base, count: count))
  }
}
