import CSodium

/// Secret bytes between guard pages: locked against swapping, left out of core dumps, read-only
/// once initialised, zeroed at the end.
///
/// For long-lived keys, not for data: each value takes a locked page and a few system calls.
package struct SecretBytes: ~Copyable, Sendable {
  private let memory: GuardedBuffer

  package var count: Int { memory.count }

  /// Lets `initialize` write zeroed memory, then write-protects it. Ends the process if no memory
  /// is available.
  package init<E: Error>(
    count: Int, _ initialize: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    var memory = GuardedBuffer(count: count)
    try memory.withUnsafeMutableBytes(initialize)
    memory.protect()
    self.memory = memory
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

  /// The pointer is valid only during the call.
  package borrowing func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try memory.withUnsafeBytes(body)
  }

  package borrowing func copy() -> SecretBytes { copy(0..<count) }

  package borrowing func copy(_ part: Range<Int>) -> SecretBytes {
    withUnsafeBytes { source in
      SecretBytes(count: part.count) {
        $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: source[part]))
      }
    }
  }
}

/// Writable memory between guard pages, locked against swapping, zeroed when freed.
///
/// A handshake has one for all its secrets, because an allocation costs several system calls.
// Unchecked: this noncopyable value owns the pointer alone, and only exclusive (`mutating`) access
// writes.
struct GuardedBuffer: ~Copyable, @unchecked Sendable {
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
