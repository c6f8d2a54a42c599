import CSodium

/// Writable memory between guard pages, locked against swapping, zeroed when freed.
///
/// It is the working memory of a handshake: one allocation for all of its secrets, because an
/// allocation costs several system calls.
struct GuardedBuffer: ~Copyable, @unchecked Sendable {
  // Unchecked: the pointer has one owner, this noncopyable value, and is written only through
  // exclusive (`mutating`) access.
  private let base: UnsafeMutableRawPointer
  let count: Int

  /// Allocates `count` zero bytes.
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

  /// The bytes, for reading.
  borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  /// The bytes, for reading and writing.
  mutating func withUnsafeMutableBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try body(UnsafeMutableRawBufferPointer(start: base, count: count))
  }
}
