import Foundation
import Glibc
import KithTerminal

/// Asks a person for a confirmation.
enum Confirmation {
  /// Asks on the terminal; every answer but yes is no.
  static func isGiven(_ question: String, _ console: Console) -> Bool {
    let answer = answer(to: question + " [y/N] ", console)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  /// Returns the line typed after the question, trimmed; nil at the end of input. Earlier input is
  /// dropped: it was no answer.
  static func answer(to question: String, _ console: Console) -> String? {
    _ = tcflush(STDIN_FILENO, TCIFLUSH)
    console.prompt(question)
    let line = (try? InputText.answer()) ?? nil
    return line?.trimmingCharacters(in: .whitespaces)
  }
}
