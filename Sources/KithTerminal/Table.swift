import FoundationEssentials
import Glibc

/// A table for people: aligned columns, two spaces apart, no spaces at the ends of lines. It fits
/// the terminal (``Style/columns``); elsewhere all texts are whole.
package struct Table {
  package enum Alignment {
    case left
    case right
    /// On the left, and never cut: what a person copies into the next command. A text that is too wide
    /// for a narrow terminal has a line of its own, and its row goes on below; only the first column.
    case whole
    /// On the left, and cut on a terminal that is too narrow.
    case cut
    /// On the left, and continued on the next lines there; only the last column.
    case wrapped
  }

  /// One line, harmless on a terminal (``Columns/sentence(_:limit:)``): texts may come from other
  /// devices. Show a name or a key with ``Columns/printable(_:limit:)`` first.
  package struct Cell: ExpressibleByStringInterpolation {
    package let text: String
    package let tone: Style.Tone

    package init(_ text: String, _ tone: Style.Tone = .plain) {
      self.text = Columns.sentence(text)
      self.tone = tone
    }

    package init(stringLiteral text: String) { self.init(text) }

    fileprivate func with(_ text: String) -> Cell { Cell(text, tone) }
  }

  /// The columns to which a text may be cut, the least for continued text, and the least beside which
  /// the others stand.
  private static let (leastCut, leastWrapped, leastWhole) = (8, 24, 12)
  /// The columns that a text gets before it is cut for the sake of a long one in the first column.
  private static let leastBeside = 16

  private let columns: [(head: String, alignment: Alignment)]
  private var rows: [[Cell]] = []

  /// Without columns there is no line of heads, all cells are on the left, and the last ones are
  /// continued.
  package init(_ columns: [(head: String, alignment: Alignment)] = []) { self.columns = columns }

  /// Missing cells are empty.
  package mutating func add(_ cells: [Cell]) { rows.append(cells) }

  package mutating func add(fact name: String, _ cell: Cell) { add([Cell(name, .faint), cell]) }

  /// Without a final line feed.
  package func text(_ style: Style = .plain) -> String {
    let all = (columns.isEmpty ? [] : [columns.map { Cell($0.head, .faint) }]) + rows
    var widths = (0..<(all.map(\.count).max() ?? 0)).map { column in
      all.map { $0.indices.contains(column) ? Columns.width($0[column].text) : 0 }.max() ?? 0
    }
    if let limit = style.columns {
      fit(&widths, limit, firsts: all.compactMap(\.first).map { Columns.width($0.text) })
    }
    return all.flatMap { lines($0, widths, style) }.joined(separator: "\n")
  }

  private func alignment(_ column: Int, of count: Int) -> Alignment {
    if columns.isEmpty { return column > 0 && column == count - 1 ? .wrapped : .left }
    return columns.indices.contains(column) ? columns[column].alignment : .left
  }

  /// Narrows a first column that is never cut to its texts that fit beside the others; then the widest
  /// columns that may be cut, then the continued one. A table whose other columns are too wide stays
  /// so. `firsts`: the widths of the first column's texts.
  private func fit(_ widths: inout [Int], _ limit: Int, firsts: [Int]) {
    let count = widths.count
    guard count > 0 else { return }
    let cut = widths.indices.filter { alignment($0, of: count) == .cut }
    let last = alignment(count - 1, of: count) == .wrapped ? count - 1 : nil
    let gaps = 2 * (count - 1)
    if alignment(0, of: count) == .whole {
      let others = widths.indices.dropFirst().reduce(gaps) { sum, column in
        let least =
          column == last ? Self.leastWrapped : cut.contains(column) ? Self.leastBeside : .max
        return sum + min(widths[column], least)
      }
      let available = limit - others
      if widths[0] > available {
        // One long text would make all others unreadable.
        let fitting = firsts.filter { $0 <= available }.max() ?? 0
        widths[0] = max(fitting, min(widths[0], Self.leastWhole))
      }
    }
    func excess() -> Int {
      let all = widths.indices.reduce(gaps) { sum, column in
        sum + (column == last ? min(widths[column], Self.leastWrapped) : widths[column])
      }
      return all - limit
    }
    while excess() > 0, let widest = cut.max(by: { widths[$0] < widths[$1] }),
      widths[widest] > Self.leastCut
    {
      widths[widest] -= 1
    }
    if alignment(0, of: count) == .whole {
      widths[0] = max(widths[0] - max(0, excess()), min(widths[0], Self.leastWhole))
    }
    guard let last else { return }
    let others = widths.dropLast().reduce(gaps, +)
    widths[last] = min(widths[last], max(limit - others, Self.leastCut))
  }

  /// One line, and those that continue its last cell.
  private func lines(_ row: [Cell], _ widths: [Int], _ style: Style) -> [String] {
    if alignment(0, of: widths.count) == .whole, let first = row.first,
      Columns.width(first.text) > widths[0]
    {
      return [style(first.tone, first.text)] + lines(["" as Cell] + row.dropFirst(), widths, style)
    }
    var row = row
    var continued: [String] = []
    for column in row.indices {
      switch alignment(column, of: widths.count) {
      case .cut: row[column] = row[column].with(Columns.cut(row[column].text, to: widths[column]))
      case .wrapped:
        let parts = Columns.wrapped(row[column].text, to: widths[column])
        row[column] = row[column].with(parts.first ?? "")
        continued = Array(parts.dropFirst())
      case .left, .right, .whole: break
      }
    }
    let indent = widths.dropLast().reduce(0) { $0 + $1 + 2 }
    let tone = row.last?.tone ?? .plain
    return [line(row, widths, style)]
      + continued.map { String(repeating: " ", count: indent) + style(tone, $0) }
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
      let isRight = alignment(column, of: widths.count) == .right
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

  /// Returns a text of at most so many columns, which ends in `…` if it was longer.
  package static func cut(_ text: String, to limit: Int) -> String {
    guard width(text) > limit else { return text }
    var (cut, used) = ("", 1)
    for character in text {
      used += width(character)
      guard used <= limit else { break }
      cut.append(character)
    }
    return cut + "…"
  }

  /// Returns lines of at most so many columns, broken between words if possible.
  package static func wrapped(_ text: String, to limit: Int) -> [String] {
    guard width(text) > limit, limit > 0 else { return [text] }
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, width(line) + 1 + width(String(word)) > limit {
        lines.append(line)
        line = ""
      }
      line += (line.isEmpty ? "" : " ") + word
      while width(line) > limit {
        let whole = line.prefix(max(1, cut(line, to: limit + 1).count - 1))
        lines.append(String(whole))
        line.removeFirst(whole.count)
      }
    }
    return line.isEmpty ? lines : lines + [line]
  }

  /// East Asian Width W and F (Unicode Standard Annex 11): emoji that are drawn as such, and blocks.
  private static func width(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    let isDrawnAsEmoji =
      first.properties.isEmojiPresentation
      || first.properties.isEmoji && character.unicodeScalars.contains("\u{FE0F}")
    if isDrawnAsEmoji { return 2 }
    switch first.value {
    case 0x300...0x36F, 0x200B...0x200F: return 0
    case 0x1100...0x115F, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F,
      0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19, 0xFE30...0xFE6F, 0xFF00...0xFF60,
      0xFFE0...0xFFE6, 0x16FE0...0x18D7F, 0x1AFF0...0x1B2FF, 0x1F200...0x1F2FF,
      0x20000...0x3FFFD:
      return 2
    default: return 1
    }
  }
}

/// Colours, and lines that fit, on terminals only.
package struct Style: Sendable {
  /// The values are ANSI colours.
  package enum Tone: String, Sendable {
    case plain = ""
    case good = "32"
    case warning = "33"
    case bad = "31"
    case faint = "2"
    case strong = "1"
  }

  package let isColoured: Bool
  /// The columns that a table may take; nil: any number.
  package let columns: Int?

  package init(isColoured: Bool, columns: Int? = nil) {
    self.isColoured = isColoured
    self.columns = columns
  }

  package static let plain = Style(isColoured: false)

  package static var output: Style {
    Style(
      isColoured: Terminal.allowsColour(
        environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.hasOutput),
      columns: Terminal.columns(of: STDOUT_FILENO))
  }

  package func callAsFunction(_ tone: Tone, _ text: String) -> String {
    guard isColoured, tone != .plain, !text.isEmpty else { return text }
    return "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[0m"
  }

  /// A text of any length, broken between words if it does not fit. Lines after the first are
  /// indented, so that none looks like another message.
  package func paragraph(_ tone: Tone, _ text: String) -> String {
    Columns.wrapped(text, to: (columns ?? .max) - 2).map { self(tone, $0) }
      .joined(separator: "\n  ")
  }
}
