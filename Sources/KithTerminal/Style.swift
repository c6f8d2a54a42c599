import Foundation

/// Colours on terminals only.
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

  package static let plain = Style(isColoured: false)

  package static var output: Style {
    Style(
      isColoured: Terminal.allowsColour(
        environment: ProcessInfo.processInfo.environment, isTerminal: Terminal.hasOutput))
  }

  package func callAsFunction(_ tone: Tone, _ text: String) -> String {
    guard isColoured, tone != .plain, !text.isEmpty else { return text }
    return "\u{1B}[\(tone.rawValue)m\(text)\u{1B}[0m"
  }
}
