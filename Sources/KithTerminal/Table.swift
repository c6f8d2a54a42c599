/// A table for people: aligned columns, two spaces apart, no spaces at the ends of lines.
package struct Table {
  package enum Alignment {
    case left
    case right
  }

  /// One line, harmless on a terminal (``Columns/printable(_:limit:)``): texts may come from other
  /// devices.
  package struct Cell: ExpressibleByStringInterpolation {
    package let text: String
    package let tone: Style.Tone

    package init(_ text: String, _ tone: Style.Tone = .plain) {
      self.text = Columns.printable(text)
      self.tone = tone
    }

    package init(stringLiteral text: String) { self.init(text) }
  }

  private let columns: [(head: String, alignment: Alignment)]
  private var rows: [[Cell]] = []

  /// Without columns there is no line of heads, and all cells are on the left.
  package init(_ columns: [(head: String, alignment: Alignment)] = []) { self.columns = columns }

  /// Missing cells are empty.
  package mutating func add(_ cells: [Cell]) { rows.append(cells) }

  package mutating func add(fact name: String, _ cell: Cell) { add([Cell(name, .faint), cell]) }

  /// Without a final line feed.
  package func text(_ style: Style = .plain) -> String {
    let all = (columns.isEmpty ? [] : [columns.map { Cell($0.head, .faint) }]) + rows
    let widths = (0..<(all.map(\.count).max() ?? 0)).map { column in
      all.map { $0.indices.contains(column) ? Columns.width($0[column].text) : 0 }.max() ?? 0
    }
    return all.map { row in line(row, widths, style) }.joined(separator: "\n")
  }

  private func line(_ row: [Cell], _ widths: [Int], _ style: Style) -> String {
    var line = ""
    // Spaces are written only before text.
    var pending = 0
    for (column, cell) in row.enumerated() {
      let gap = String(repeating: " ", count: pending)
      let padding = widths[column] - Columns.width(cell.text)
      if cell.text.isEmpty {
        pending += widths[column] + 2
        continue
      }
      let isRight = columns.indices.contains(column) && columns[column].alignment == .right
      let before = isRight ? String(repeating: " ", count: padding) : ""
      line += gap + before + style(cell.tone, cell.text)
      pending = 2 + (isRight ? 0 : padding)
    }
    return line
  }
}

package enum Columns {
  /// Returns the columns of a text: two for East Asian wide characters and emoji, none for
  /// combining marks.
  package static func width(_ text: String) -> Int {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
    return text.reduce(0) { sum, character in sum + width(character) }
  }

  private static func width(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    switch first.value {
    case 0x300...0x36F, 0x200B...0x200F: return 0
    case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1FAFF, 0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}
