import Foundation

/// Colours for terminals; plain text everywhere else.
package struct Style: Sendable {
  /// The meaning of a piece of text.
  package enum Tone: String, Sendable {
    case plain = ""
    case good = "32"
    case warning = "33"
    case bad = "31"
    case faint = "2"
    case strong = "1"
  }

  /// Whether tones are shown.
  package let isColoured: Bool

  package static let plain = Style(isColoured: false)

  /// The style that standard output allows.
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
