import Foundation
import Glibc

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
