import Testing

@testable import KithCommands

@Suite("QR codes")
struct QRDrawingTests {
  /// The modules that a drawing shows: a module is dark if a person sees it dark.
  static func modules(_ lines: [String], isColoured: Bool) -> [[Bool]] {
    lines.flatMap { line -> [[Bool]] in
      var text = line
      if isColoured {
        #expect(line.hasPrefix("\u{1b}[38;5;16;48;5;231m") && line.hasSuffix("\u{1b}[0m"))
        text = String(line.dropFirst("\u{1b}[38;5;16;48;5;231m".count).dropLast("\u{1b}[0m".count))
      }
      // Black on white, ink is dark; on a terminal that is light on dark, ink is light.
      return [
        text.map { ("█▀".contains($0)) == isColoured },
        text.map { ("█▄".contains($0)) == isColoured },
      ]
    }
  }

  @Test(arguments: [true, false])
  func drawingsShowTheModulesWithAQuietZone(isColoured: Bool) {
    let width = 21
    let matrix = QRMatrix(
      width: width, isDark: (0..<width * width).map { ($0 * 7 + $0 / width) % 3 == 0 })
    let lines = QRDrawing.lines(matrix, isColoured: isColoured)
    let shown = Self.modules(lines, isColoured: isColoured)
    #expect(shown.allSatisfy { $0.count == QRDrawing.columns(matrix) })
    let zone = QRDrawing.quietZone
    for (line, modules) in shown.enumerated() {
      for (column, isDark) in modules.enumerated() {
        #expect(isDark == matrix[line - zone, column - zone], "\(line), \(column)")
      }
    }
    #expect(shown.count >= width + 2 * zone)
  }

  /// The library returns a QR code: its three finder patterns are in their places, dark on light,
  /// and its size is one of the standard's.
  @Test(.enabled(if: QRMatrix(caseless: "x") != nil, "libqrencode4 is not installed"))
  func theLibrarysModulesAreDarkWhereTheStandardSaysSo() throws {
    let token = "kith1-" + String(repeating: "04qk6kzsfv9n2kqm1b0d", count: 6)
    let matrix = try #require(QRMatrix(caseless: token))
    // Version 6 with level L holds 195 alphanumeric characters; in bytes it would be version 6 at
    // 134, so the size shows that case was not kept.
    #expect((matrix.width - 17).isMultiple(of: 4) && matrix.width <= 17 + 4 * 6)
    #expect(matrix == QRMatrix(caseless: token.uppercased()))
    let far = matrix.width - 7
    for (top, left) in [(0, 0), (0, far), (far, 0)] {
      for line in 0..<7 {
        for column in 0..<7 {
          let ring = min(line, column, 6 - line, 6 - column)
          #expect(matrix[top + line, left + column] == (ring != 1), "\(line), \(column)")
        }
      }
    }
    // The timing pattern alternates.
    for column in 8..<far { #expect(matrix[6, column] == column.isMultiple(of: 2)) }
    #expect(QRMatrix(caseless: String(repeating: "A", count: 8_000)) == nil)
  }
}
