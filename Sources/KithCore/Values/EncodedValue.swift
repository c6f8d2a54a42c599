/// A value in the one encoding that it has: the `Value` message of `kith.proto`, with fields in
/// order of number, dictionary members strictly ascending by the UTF-8 bytes of their keys, numbers
/// in their shortest form, and nothing unknown.
///
/// Equal values have equal bytes on every peer, so a value can be compared, digested and measured
/// without being decoded.
public struct EncodedValue: Hashable, Sendable {
  /// The encoding.
  public let bytes: [UInt8]

  /// What the quota counts, in bytes.
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

  /// Takes bytes from elsewhere, if they are a canonical encoding.
  ///
  /// - Throws: ``ValueError``.
  /// - Complexity: O(*n*) in time and memory, whatever the bytes claim.
  public init(checking bytes: [UInt8]) throws(ValueError) {
    var decoder = ValueDecoder(bytes)
    _ = try decoder.decode()
    self.bytes = bytes
  }

  /// Takes bytes that were checked before, such as those that this device stored itself.
  ///
  /// Should they be wrong all the same, ``decoded()`` throws.
  package init(trusting bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// The value.
  ///
  /// - Throws: ``ValueError``, only if the bytes were trusted and should not have been.
  /// - Complexity: O(*n*).
  public func decoded() throws(ValueError) -> PropertyListValue {
    var decoder = ValueDecoder(bytes)
    return try decoder.decode()
  }
}
