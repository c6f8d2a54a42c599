internal import KithCrypto

/// Reads a message only in its one canonical encoding: fields in order of number, shortest numbers, no
/// defaults, nothing unknown. So reading needs no second encoding to compare with.
///
/// Reads stop at the message's end, and a length allocates only once its bytes exist.
struct CanonicalReader {
  /// Why nothing is read: the bytes are malformed, or not canonical.
  struct Failure: Error {}

  /// A field's number and wire type; the numbers in use take one byte.
  enum Tag {
    static func number(_ field: UInt8) -> UInt8 { field << 3 }
    static func fixed64(_ field: UInt8) -> UInt8 { field << 3 | 1 }
    static func bytes(_ field: UInt8) -> UInt8 { field << 3 | 2 }
  }

  private let bytes: UnsafeRawBufferPointer
  private var position = 0

  /// Valid as long as the bytes are.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  /// Passes the tag if the field is there.
  mutating func has(_ tag: UInt8) -> Bool {
    guard position < bytes.count, bytes[position] == tag else { return false }
    position += 1
    return true
  }

  func end() throws(Failure) {
    guard position == bytes.count else { throw Failure() }
  }

  /// An absent field is zero, and zero is absent.
  mutating func number(_ field: UInt8) throws(Failure) -> UInt64 {
    guard has(Tag.number(field)) else { return 0 }
    let number = try varint()
    guard number != 0 else { throw Failure() }
    return number
  }

  /// As ``number(_:)``.
  mutating func fixed64(_ field: UInt8) throws(Failure) -> UInt64 {
    guard has(Tag.fixed64(field)) else { return 0 }
    guard bytes.count - position >= 8 else { throw Failure() }
    let number = UInt64(
      littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    guard number != 0 else { throw Failure() }
    position += 8
    return number
  }

  mutating func fixed<Value: FixedBytes>(
    _ field: UInt8, as type: Value.Type = Value.self
  ) throws(Failure) -> Value {
    let bytes = try content(field)
    guard bytes.count == Value.byteCount else { throw Failure() }
    return Value { $0.copyMemory(from: bytes) }
  }

  mutating func message(_ field: UInt8) throws(Failure) -> CanonicalReader {
    CanonicalReader(try content(field))
  }

  /// The content of a field that must be there.
  mutating func content(_ field: UInt8) throws(Failure) -> UnsafeRawBufferPointer {
    guard has(Tag.bytes(field)) else { throw Failure() }
    return try content()
  }

  /// The content of a field whose tag was passed.
  mutating func content() throws(Failure) -> UnsafeRawBufferPointer {
    let length = try varint()
    guard length <= UInt64(bytes.count - position) else { throw Failure() }
    defer { position += Int(length) }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<position + Int(length)])
  }

  private mutating func varint() throws(Failure) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: 0 as UInt64, to: 64, by: 7) {
      guard position < bytes.count else { throw Failure() }
      let byte = bytes[position]
      position += 1
      guard shift < 63 || byte <= 1 else { throw Failure() }
      value |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        guard byte != 0 || shift == 0 else { throw Failure() }
        return value
      }
    }
    throw Failure()
  }
}
