/// Draws two modules a character, one above the other.
enum QRDrawing {
  /// Light modules around the code, which scanners need (ISO/IEC 18004, 9.1).
  static let quietZone = 4

  static func columns(_ matrix: QRMatrix) -> Int { matrix.width + 2 * quietZone }

  /// Black on white in any terminal. Without colours the text draws the light modules, for light
  /// text on dark.
  static func lines(_ matrix: QRMatrix, isColoured: Bool) -> [String] {
    let range = -quietZone..<matrix.width + quietZone
    return stride(from: range.lowerBound, to: range.upperBound, by: 2).map { line in
      let text = String(
        range.map { column -> Character in
          let upper = matrix[line, column] == isColoured
          let lower = matrix[line + 1, column] == isColoured
          return upper ? (lower ? "█" : "▀") : (lower ? "▄" : " ")
        })
      return isColoured ? "\u{1b}[38;5;16;48;5;231m\(text)\u{1b}[0m" : text
    }
  }
}
