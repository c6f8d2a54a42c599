/// The error for a value without an encoding, or bytes that are not one.
package enum ValueError: Error, Hashable, Sendable {
  /// The bytes are no `Value` message: truncated, a wrong wire type, no kind, text that is not
  /// UTF-8, or two keys in one dictionary that Swift's `String` calls equal.
  case malformed
  /// The bytes are a `Value`, but not canonical: unknown or repeated fields, fields or members out
  /// of order, longer numbers than needed.
  case notCanonical
  /// More than ``PropertyListValue/maximumDepth`` containers are nested.
  case tooDeep
}

extension ValueError: CustomStringConvertible {
  /// A sentence for people.
  package var description: String {
    switch self {
    case .malformed: "the bytes are not an encoded value"
    case .notCanonical: "the bytes are not the canonical encoding of their value"
    case .tooDeep:
      "the value is nested deeper than \(PropertyListValue.maximumDepth) arrays and dictionaries"
    }
  }
}
