import CSodium

/// The once-per-process start of libsodium, and thin helpers over its memory functions.
enum Sodium {
  private static let isStarted: Bool = sodium_init() >= 0

  /// Starts libsodium at the first call: it picks the fastest code for this processor, opens the
  /// random source and draws the canaries of guarded memory. Later calls are cheap.
  static func start() {
    precondition(isStarted, "libsodium could not start: the system has no random source")
  }

  /// Overwrites the buffer with zeros in a way that the optimiser keeps.
  static func zero(_ buffer: UnsafeMutableRawBufferPointer) {
    sodium_memzero(buffer.baseAddress, buffer.count)
  }

  /// Overwrites the array's bytes with zeros.
  ///
  /// An array that shares its storage with a copy is copied first, as any mutation does; the
  /// other copy keeps its bytes.
  static func zero(_ bytes: inout [UInt8]) {
    bytes.withUnsafeMutableBytes { zero($0) }
  }
}

// The address of an empty buffer that has none; it is never read or written. Unsafe only for the
// checker: the pointer itself never changes.
nonisolated(unsafe) private let nowhere = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)

extension UnsafeRawBufferPointer {
  /// The buffer as libsodium's C functions take it.
  var bytePointer: UnsafePointer<UInt8> {
    baseAddress?.assumingMemoryBound(to: UInt8.self) ?? UnsafePointer(nowhere)
  }
}

extension UnsafeMutableRawBufferPointer {
  /// The buffer as libsodium's C functions take it.
  var bytePointer: UnsafeMutablePointer<UInt8> {
    baseAddress?.assumingMemoryBound(to: UInt8.self) ?? nowhere
  }
}
