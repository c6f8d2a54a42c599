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

/// Compares byte strings in O(*n*), in a time that depends only on their lengths.
package func constantTimeEquals(_ first: [UInt8], _ second: [UInt8]) -> Bool {
  first.withUnsafeBytes { left in
    second.withUnsafeBytes { right in Sodium.equal(left, right) }
  }
}

extension Sodium {
  /// Takes a time that depends only on the lengths.
  static func equal(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) -> Bool {
    first.count == second.count
      && sodium_memcmp(first.baseAddress, second.baseAddress, first.count) == 0
  }
}

package enum CryptoError: Error, Equatable, Sendable {
  case wrongLength(expected: Int, actual: Int)
  /// A public key is of low order, which would make a shared secret public, or a CPace share or
  /// scalar is invalid.
  case invalidKey
  /// The key or nonce is wrong, or the bytes were altered.
  case authenticationFailed
  case outOfMemory
  case parameterOutOfBounds(name: String, allowed: ClosedRange<Int>, actual: Int)
}
