/// A value in its only encoding: the `Value` message of `kith.proto`. Its fields are in order of
/// number, dictionary members strictly ascending by the UTF-8 bytes of their keys, numbers in their
/// shortest form, and nothing is unknown.
///
/// Equal values have equal bytes on every peer, so a value can be compared, digested and measured
/// without being decoded.
public struct EncodedValue: Hashable, Sendable {
  /// The encoding.
  public let bytes: [UInt8]

  /// The size that the quota counts, in bytes.
  ///
  /// - Complexity: O(1).
  public var size: Int { bytes.count }

  /// Encodes a value.
  ///
  /// - Throws: ``ValueError/tooDeep``.
  /// - Complexity: O(*n* log *n*) for dictionaries (their members are sorted), otherwise O(*n*).
  public init(_ value: PropertyListValue) throws(ValueError) {
    var encoder = ValueEncoder()
    try encoder.prepend(value, depth: 0)
    bytes = encoder.bytes
  }

  /// Checks that bytes from a peer or file are a canonical encoding, and takes them.
  ///
  /// - Throws: ``ValueError``.
  /// - Complexity: O(*n*) in time and memory, whatever lengths the bytes claim.
  public init(checking bytes: [UInt8]) throws(ValueError) {
    var decoder = ValueDecoder(bytes)
    _ = try decoder.decode()
    self.bytes = bytes
  }

  /// Takes bytes that were checked before, such as those that this device stored itself.
  ///
  /// If they are wrong nevertheless, ``decoded()`` throws.
  package init(trusting bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Decodes the value.
  ///
  /// - Throws: ``ValueError``, only if trusted bytes were wrong.
  /// - Complexity: O(*n*).
  public func decoded() throws(ValueError) -> PropertyListValue {
    var decoder = ValueDecoder(bytes)
    return try decoder.decode()
  }
}
