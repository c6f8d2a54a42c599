import Glibc

/// A progress bar on standard error, if that is a terminal.
package struct ProgressBar: Sendable {
  private let title: String
  private let total: Int
  private let isShown: Bool
  private let console = Console()

  package init(_ title: String, total: Int, isQuiet: Bool) {
    self.title = title
    self.total = total
    isShown = Terminal.hasTalk && !isQuiet && total > 0
  }

  package func update(_ done: Int) {
    guard isShown else { return }
    console.prompt("\r\u{1B}[K" + Self.line(title, done, total, columns: Terminal.columns - 1))
  }

  package func finish() {
    if isShown { console.prompt("\r\u{1B}[K") }
  }

  package static func line(_ title: String, _ done: Int, _ total: Int, columns: Int) -> String {
    let counts = " \(done)/\(total)"
    let room = columns - Columns.width(title) - counts.count - 1
    guard room >= 8 else { return String((title + counts).prefix(max(0, columns))) }
    let width = min(room, 40)
    let filled = total > 0 ? min(width, done * width / total) : width
    let bar =
      String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
    return "\(title) \(bar)\(counts)"
  }
}
