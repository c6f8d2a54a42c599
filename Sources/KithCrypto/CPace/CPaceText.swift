import CSodium

/// Byte strings as the draft joins and hashes them.
enum CPaceText {
  /// The length in LEB128.
  static func length(_ count: Int) -> [UInt8] {
    var rest = count
    var bytes: [UInt8] = []
    repeat {
      bytes.append(UInt8(rest & 0x7f) | (rest > 0x7f ? 0x80 : 0))
      rest >>= 7
    } while rest > 0
    return bytes
  }

  /// The bytes after their length (`prepend_len`).
  static func prefixed(_ bytes: [UInt8]) -> [UInt8] { length(bytes.count) + bytes }

  /// SHA-512 of public bytes, a secret, and public bytes. Leaves no copy of the secret.
  static func hash(
    _ before: [[UInt8]], secret: UnsafeRawBufferPointer, _ after: [[UInt8]],
    into digest: UnsafeMutableRawBufferPointer
  ) {
    Sodium.start()
    var state = crypto_hash_sha512_state()
    _ = crypto_hash_sha512_init(&state)
    for part in before { _ = crypto_hash_sha512_update(&state, part, UInt64(part.count)) }
    _ = crypto_hash_sha512_update(&state, secret.bytePointer, UInt64(secret.count))
    for part in after { _ = crypto_hash_sha512_update(&state, part, UInt64(part.count)) }
    _ = crypto_hash_sha512_final(&state, digest.bytePointer)
    withUnsafeMutableBytes(of: &state) { Sodium.zero($0) }
  }

  /// Joins parts, each after its length (`lv_cat`).
  static func joined(_ parts: [[UInt8]]) -> [UInt8] { parts.flatMap(prefixed) }
}

extension CPace {
  /// A channel identifier: each part follows its length, so that borders count.
  package static func channel(_ parts: [UInt8]...) -> [UInt8] { CPaceText.joined(parts) }
}
