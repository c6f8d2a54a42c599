/// The error for a value without an encoding, or bytes that are not one.
public enum ValueError: Error, Hashable, Sendable {
  /// The bytes are not a `Value` message: truncated, of a wrong wire type, without a kind, with
  /// text that is not UTF-8, or with two keys in one dictionary that Swift's `String` calls equal.
  case malformed
  /// The bytes can be read as a `Value`, but an encoder writes it differently: unknown or repeated
  /// fields, fields or members out of order, longer numbers than needed.
  case notCanonical
  /// More than ``PropertyListValue/maximumDepth`` containers are nested.
  case tooDeep
}

extension ValueError: CustomStringConvertible {
  /// A sentence for people.
  public var description: String {
    switch self {
    case .malformed: "the bytes are not an encoded value"
    case .notCanonical: "the bytes are not the canonical encoding of their value"
    case .tooDeep:
      "the value is nested deeper than \(PropertyListValue.maximumDepth) arrays and dictionaries"
    }
  }
}
