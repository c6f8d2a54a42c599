import Foundation
import Glibc
import KithTerminal

/// A question whose answer is a person's.
enum Confirmation {
  /// Asks on the terminal; all but yes is no.
  static func isGiven(_ question: String, _ console: Console) -> Bool {
    let answer = answer(to: question + " [y/N] ", console)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  /// The line that a person types once the question is seen, without white space around it; nil where
  /// input has ended. What was typed before the question answers something else, and is dropped.
  static func answer(to question: String, _ console: Console) -> String? {
    _ = tcflush(STDIN_FILENO, TCIFLUSH)
    console.prompt(question)
    let line = (try? InputText.answer()) ?? nil
    return line?.trimmingCharacters(in: .whitespaces)
  }
}
