extension PropertyListValue: CustomStringConvertible {
  /// The value for logs of tests and debuggers, with dictionaries in order of their keys'
  /// UTF-8 bytes.
  ///
  /// Dates are shown as seconds since 2001. On Linux, Foundation's description of a date that is
  /// not finite traps, and a peer may send one.
  ///
  /// - Complexity: O(*n* log *n*) in the size of the value.
  public var description: String {
    switch self {
    case .bool(let bool): return "bool(\(bool))"
    case .integer(let integer): return "integer(\(integer))"
    case .double(let double): return "double(\(double))"
    case .string(let string): return "string(\(string.debugDescription))"
    case .date(let date): return "date(\(date.timeIntervalSinceReferenceDate))"
    case .data(let data): return "data(\(data.count) bytes)"
    case .array(let values):
      return "[" + values.map(\.description).joined(separator: ", ") + "]"
    case .dictionary(let members):
      if members.isEmpty { return "[:]" }
      let sorted = members.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
      let texts = sorted.map { "\($0.key.debugDescription): \($0.value)" }
      return "[" + texts.joined(separator: ", ") + "]"
    }
  }
}
