import CSodium

/// The start of libsodium, and its memory functions.
enum Sodium {
  private static let isStarted: Bool = sodium_init() >= 0

  /// Once per process, picks the fastest code for the processor, opens the random source and draws
  /// canaries for guarded memory.
  static func start() {
    precondition(isStarted, "libsodium could not start: the system has no random source")
  }

  /// Overwrites with zeros in a way that the optimiser keeps.
  static func zero(_ buffer: UnsafeMutableRawBufferPointer) {
    sodium_memzero(buffer.baseAddress, buffer.count)
  }

  /// If the array shares its storage, only this copy becomes zero, as with any mutation.
  static func zero(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { zero($0) }
  }
}

// The address of empty buffers; never read or written. Unsafe only for the checker: the pointer
// never changes.
nonisolated(unsafe) private let nowhere = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

extension UnsafeRawBufferPointer {
  /// For libsodium's C functions.
  var bytePointer: UnsafePointer<UInt8> {
    baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(nowhere)
  }
}

extension UnsafeMutableRawBufferPointer {
  /// For libsodium's C functions.
  var bytePointer: UnsafeMutablePointer<UInt8> {
    baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nowhere
  }
}
