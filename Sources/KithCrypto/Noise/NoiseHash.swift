import CSodium

/// BLAKE2b-512, HMAC (RFC 2104, block of 128 bytes) and Noise's HKDF (section 4.3) over it.
///
/// Noise requires HMAC instead of BLAKE2b's own keyed mode.
package enum NoiseHash {
  static let byteCount = 64

  private static let blockByteCount = 128

  static func hash(_ first: [UInt8], _ second: UnsafeRawBufferPointer) -> [UInt8] {
    var state = kith_blake2b_state()
    kith_blake2b_init(&state, byteCount)
    kith_blake2b_update(&state, first, UInt64(first.count))
    kith_blake2b_update(&state, second.bytePointer, UInt64(second.count))
    var digest = [UInt8](repeating: 0, count: byteCount)
    kith_blake2b_final(&state, &digest, byteCount)
    return digest
  }

  /// Writes as many outputs of 64 bytes, one to three, as fit in `outputs`.
  ///
  /// `scratch` takes 64 secret bytes; it and `outputs` overlap neither each other nor the inputs.
  static func derive(
    chainingKey: UnsafeRawBufferPointer, input: UnsafeRawBufferPointer,
    scratch: UnsafeMutableRawBufferPointer, outputs: UnsafeMutableRawBufferPointer
  ) {
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    authenticate(key: chainingKey, input, nil, into: scratch)
    var previous = nothing
    for index in 0..<(outputs.count / byteCount) {
      let place = (index * byteCount)..<((index + 1) * byteCount)
      let output = UnsafeMutableRawBufferPointer(rebasing: outputs[place])
      authenticate(
        key: UnsafeRawBufferPointer(scratch), previous, UInt8(index + 1), into: output)
      previous = UnsafeRawBufferPointer(output)
    }
  }

  /// HMAC of a message and an optional last byte, under a key of 64 bytes.
  package static func authenticate(
    key: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer, _ lastByte: UInt8?,
    into tag: UnsafeMutableRawBufferPointer
  ) {
    var state = kith_blake2b_state()
    start(&state, key: key, mask: 0x36)
    kith_blake2b_update(&state, message.bytePointer, UInt64(message.count))
    if var lastByte { kith_blake2b_update(&state, &lastByte, 1) }
    kith_blake2b_final(&state, tag.bytePointer, byteCount)
    start(&state, key: key, mask: 0x5c)
    kith_blake2b_update(&state, tag.bytePointer, UInt64(byteCount))
    kith_blake2b_final(&state, tag.bytePointer, byteCount)
    withUnsafeMutableBytes(of: &state) { Sodium.zero($0) }
  }

  private static func start(
    _ state: inout kith_blake2b_state, key: UnsafeRawBufferPointer, mask: UInt8
  ) {
    withUnsafeTemporaryAllocation(byteCount: blockByteCount, alignment: 16) { block in
      for index in 0..<blockByteCount {
        block[index] = (index < key.count ? key[index] : 0) ^ mask
      }
      kith_blake2b_init(&state, byteCount)
      kith_blake2b_update(&state, block.bytePointer, UInt64(blockByteCount))
      Sodium.zero(block)
    }
  }
}
