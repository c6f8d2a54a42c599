/// Splits the input of `kith batch` into lines.
struct BatchLines: Sendable {
  /// Bytes of a line, without its line feed. The rest of a longer one is dropped.
  static let limit = 8 << 20

  private var rest: [UInt8] = []
  private var isTooLong = false

  /// Returns the lines that end in these bytes; nil for a line beyond the limit.
  mutating func take(_ bytes: [UInt8]) -> [[UInt8]?] {
    var lines: [[UInt8]?] = []
    var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)[...]
    while let piece = pieces.popFirst() {
      if rest.count + piece.count > Self.limit { isTooLong = true }
      if isTooLong { rest = [] } else { rest += piece }
      if !pieces.isEmpty { lines.append(end()) }
    }
    return lines
  }

  /// Returns the line so far, as at the end of the input.
  mutating func end() -> [UInt8]? {
    defer { (rest, isTooLong) = ([], false) }
    return isTooLong ? nil : rest
  }
}
