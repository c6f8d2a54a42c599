/// A JSON text as written, without rounding, dropping or reordering.
indirect enum JSONNode: Equatable {
  case null
  case bool(Bool)
  /// The digits as text, so that `1`, `1.0` and 20 digits are preserved.
  case number(String)
  case string(String)
  case array([JSONNode])
  /// In the order of the text; no two keys are equal, except in a file (``JSONReader``).
  case object([JSONMember])
}

struct JSONMember: Equatable {
  let key: String
  let value: JSONNode
}

struct JSONSyntaxError: Error, CustomStringConvertible {
  /// Begins with line and column: from 1, in bytes of UTF-8.
  let description: String
}
