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
