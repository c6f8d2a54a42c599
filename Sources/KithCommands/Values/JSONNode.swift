/// A JSON text as it was written, without rounding, dropping or reordering.
indirect enum JSONNode: Equatable {
  case null
  case bool(Bool)
  /// The characters of the number, so that `1`, `1.0` and 20 digits are preserved.
  case number(String)
  case string(String)
  case array([JSONNode])
  /// The members in the order of the text; no two keys are equal.
  case object([JSONMember])
}

struct JSONMember: Equatable {
  let key: String
  let value: JSONNode
}

/// The position of a syntax error in a JSON text, and its cause.
struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
  /// The line, counted from 1.
  let line: Int
  /// The column, counted from 1, in bytes of UTF-8.
  let column: Int
  let reason: String

  var description: String { "line \(line), column \(column): \(reason)" }
}
