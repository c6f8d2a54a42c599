extension PropertyListValue: CustomStringConvertible {
  /// The value for test logs and debuggers, dictionaries in order of their keys' bytes.
  ///
  /// Dates are seconds since 2001: on Linux, Foundation's description traps on a date that is not
  /// finite, which a peer may send.
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
