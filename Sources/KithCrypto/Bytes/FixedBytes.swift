/// A public byte string of one size, held inline and compared as bytes: a public key, a digest, a
/// signature, a nonce.
package protocol FixedBytes: Codable, Hashable, Comparable, Sendable, BitwiseCopyable,
  CustomStringConvertible
{
  /// Its size is the size of the value.
  associatedtype Storage: ByteStorage

  var storage: Storage { get }

  init(storage: Storage)
}

extension FixedBytes {
  @inlinable package static var byteCount: Int { MemoryLayout<Storage>.size }

  /// Throws `wrongLength` unless there are `byteCount` bytes.
  @inlinable
  package init(_ bytes: some Collection<UInt8>) throws(CryptoError) {
    let actual = bytes.count
    guard actual == Self.byteCount else {
      throw .wrongLength(expected: Self.byteCount, actual: actual)
    }
    self.init { $0.copyBytes(from: bytes) }
  }

  /// Makes the value from zero bytes that `initialize` overwrites.
  @inlinable
  package init<E: Error>(
    _ initialize: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    var storage = Storage()

    try Swift.withUnsafeMutableBytes(of: &storage) { (buffer) throws(E) in
      try initialize(buffer)
    }
    self.init(storage: storage)
  }

  /// Makes an array, with one allocation.
  @inlinable package var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// The pointer is valid only during the call.
  @inlinable
  package func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try Swift.withUnsafeBytes(of: storage, body)
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool { left.storage < right.storage }

  /// Makes the value from pairs of hexadecimal digits; nil for any other text.
  package init?(hex text: some StringProtocol) {
    guard let bytes = Self.bytes(hex: text) else { return nil }
    try? self.init(bytes)
  }

  static func bytes(hex text: some StringProtocol) -> [UInt8]? {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count == 2 * byteCount else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
  }

  package init(from decoder: any Decoder) throws { self = try Self.decoded(from: decoder) }

  package func encode(to encoder: any Encoder) throws { try encodeHex(to: encoder) }

  static func decoded(from decoder: any Decoder) throws -> Self {
    let text = try decoder.singleValueContainer().decode(String.self)
    guard let value = Self(hex: text) else {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: decoder.codingPath, debugDescription: "not \(byteCount) bytes in hexadecimal")
      )
    }
    return value
  }

  func encodeHex(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(hexDigits)
  }

  /// Lower case.
  package var hex: String { hexDigits }

  var hexDigits: String {
    let digits = Array("0123456789abcdef".utf8)
    return withUnsafeBytes { bytes in
      String(unsafeUninitializedCapacity: bytes.count * 2) { text in
        for (index, byte) in bytes.enumerated() {
          text[2 * index] = digits[Int(byte >> 4)]
          text[2 * index + 1] = digits[Int(byte & 15)]
        }
        return bytes.count * 2
      }
    }
  }

  /// The first bytes in hexadecimal: enough to tell values apart in a log.
  package var description: String { String(hexDigits.prefix(12)) }
}
