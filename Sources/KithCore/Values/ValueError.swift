/// Why a value has no encoding, or bytes are not one.
public enum ValueError: Error, Hashable, Sendable {
  /// The bytes are no `Value` message: truncated, of a wrong wire type, without a kind, with text
  /// that is not UTF-8, or with two keys in one dictionary that Swift's `String` calls equal.
  case malformed
  /// The bytes could be read as a `Value`, but they are not what an encoder writes for it: unknown
  /// or repeated fields, fields or members out of order, longer numbers than needed.
  case notCanonical
  /// More than ``PropertyListValue/maximumDepth`` containers lie inside each other.
  case tooDeep
}

extension ValueError: CustomStringConvertible {
  /// One sentence for people.
  public var description: String {
    switch self {
    case .malformed: "the bytes are not an encoded value"
    case .notCanonical: "the bytes are not the canonical encoding of their value"
    case .tooDeep:
      "the value is nested deeper than \(PropertyListValue.maximumDepth) arrays and dictionaries"
    }
  }
}
