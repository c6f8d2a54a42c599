internal import FoundationEssentials

/// A value in its canonical encoding: the `Value` message of `kith.proto`, with fields in order of
/// number, dictionary members strictly ascending by their keys' UTF-8 bytes, shortest numbers, and
/// nothing unknown.
///
/// Equal values have equal bytes on every device, so values are compared, digested and measured
/// without decoding.
package struct EncodedValue: Hashable, Sendable {
  package let bytes: [UInt8]

  /// The size that the quota counts, in bytes.
  package var size: Int { bytes.count }

  /// Throws ``ValueError/tooDeep``. O(*n* log *n*) with dictionaries, whose members are sorted;
  /// otherwise O(*n*).
  package init(_ value: PropertyListValue) throws(ValueError) {
    var encoder = ValueEncoder()
    try encoder.prepend(value, depth: 0)
    bytes = encoder.bytes
  }

  /// Checks that bytes from a peer or file are canonical.
  ///
  /// - Throws: ``ValueError``.
  /// - Complexity: O(*n*) in time and memory, for any lengths that the bytes claim.
  package init(checking bytes: [UInt8]) throws(ValueError) {
    var decoder = ValueDecoder(bytes)
    _ = try decoder.decode()
    self.bytes = bytes
  }

  /// Takes bytes that were checked before; if they are wrong, ``decoded()`` throws.
  package init(trusting bytes: [UInt8]) {
    self.bytes = bytes
  }

  /// Throws ``ValueError`` only if trusted bytes were wrong. O(*n*).
  package func decoded() throws(ValueError) -> PropertyListValue {
    var decoder = ValueDecoder(bytes)
    return try decoder.decode()
  }
}

extension EncodedValue: Codable {
  /// Reads bytes, and checks that they are canonical.
  package init(from decoder: any Decoder) throws {
    try self.init(checking: [UInt8](decoder.singleValueContainer().decode(Data.self)))
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(Data(bytes))
  }
}

package enum ValueError: Error, Hashable, Sendable {
  /// No `Value` message: truncated, a wrong wire type, no kind, text that is not UTF-8, or two keys
  /// in one dictionary that Swift's `String` calls equal.
  case malformed
  /// Not canonical: unknown or repeated fields, a wrong order, numbers longer than needed.
  case notCanonical
  /// More than ``PropertyListValue/maximumDepth`` nested containers.
  case tooDeep
}

extension ValueError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .malformed: "the bytes are not an encoded value"
    case .notCanonical: "the bytes are not the canonical encoding of their value"
    case .tooDeep:
      "the value is nested deeper than \(PropertyListValue.maximumDepth) arrays and dictionaries"
    }
  }
}
