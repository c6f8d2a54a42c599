/// A public byte string of one size: a public key, a digest, a signature, a nonce.
///
/// Values are held inline and compare as bytes.
public protocol FixedBytes: Hashable, Comparable, Sendable, BitwiseCopyable,
  CustomStringConvertible
{
  /// The inline storage; its size is the size of the value.
  associatedtype Storage: ByteStorage

  /// The bytes.
  var storage: Storage { get }

  /// The value with these bytes.
  init(storage: Storage)
}

extension FixedBytes {
  /// How many bytes a value has.
  @inlinable public static var byteCount: Int { MemoryLayout<Storage>.size }

  /// The value with these bytes; throws `wrongLength` unless there are exactly `byteCount`.
  @inlinable
  public init(_ bytes: some Collection<UInt8>) throws(CryptoError) {
    let actual = bytes.count
    guard actual == Self.byteCount else {
      throw .wrongLength(expected: Self.byteCount, actual: actual)
    }
    self.init { $0.copyBytes(from: bytes) }
  }

  /// The value whose bytes, zero at first, `initialize` writes.
  @inlinable
  public init<E: Error>(
    _ initialize: (UnsafeMutableRawBufferPointer) throws(E) -> Void
  ) throws(E) {
    var storage = Storage()

    try Swift.withUnsafeMutableBytes(of: &storage) { (buffer) throws(E) in
      try initialize(buffer)
    }
    self.init(storage: storage)
  }

  /// The bytes, as an array.
  ///
  /// - Complexity: O(*n*), with one allocation.
  @inlinable public var bytes: [UInt8] { withUnsafeBytes { Array($0) } }

  /// Lends the bytes for the time of `body`; the pointer must not outlive it.
  @inlinable
  public func withUnsafeBytes<R: ~Copyable, E: Error>(
    _ body: (UnsafeRawBufferPointer) throws(E) -> R
  ) throws(E) -> R {
    try Swift.withUnsafeBytes(of: storage, body)
  }

  /// Whether `left` comes before `right`, compared as bytes.
  @inlinable
  public static func < (left: Self, right: Self) -> Bool { left.storage < right.storage }

  /// The bytes that pairs of hexadecimal digits name; nil where the text is something else.
  public init?(hex text: some StringProtocol) {
    let digits = text.utf8.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
    guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
    let bytes = stride(from: 0, to: digits.count, by: 2).map {
      UInt8(digits[$0] << 4 | digits[$0 + 1])
    }
    try? self.init(bytes)
  }

  /// All bytes in lower-case hexadecimal.
  public var hex: String {
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
  public var description: String { String(hex.prefix(12)) }
}
