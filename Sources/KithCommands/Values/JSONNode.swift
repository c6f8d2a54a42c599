/// A JSON text as it was written: nothing is rounded, dropped or reordered.
indirect enum JSONNode: Equatable {
  case null
  case bool(Bool)
  /// The characters of the number, so that `1`, `1.0` and 20 digits stay what they are.
  case number(String)
  case string(String)
  case array([JSONNode])
  /// The members in the order of the text; no two keys are equal.
  case object([JSONMember])
}

/// A member of a JSON object.
struct JSONMember: Equatable {
  let key: String
  let value: JSONNode
}

/// Where a text stops being JSON, and why.
struct JSONSyntaxError: Error, Equatable, CustomStringConvertible {
  /// Counted from 1.
  let line: Int
  /// Counted from 1, in bytes of UTF-8.
  let column: Int
  let reason: String

  var description: String { "line \(line), column \(column): \(reason)" }
}
