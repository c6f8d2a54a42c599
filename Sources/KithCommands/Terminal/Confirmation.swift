import Foundation
import Glibc
import KithTerminal

enum Confirmation {
  /// Every answer but yes is no.
  static func isGiven(_ question: String, _ console: Console) -> Bool {
    let answer = answer(to: question + " [y/N] ", console)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  /// Returns the trimmed line; nil at the end of input. Drops input typed before the question.
  static func answer(to question: String, _ console: Console) -> String? {
    _ = tcflush(STDIN_FILENO, TCIFLUSH)
    console.prompt(question)
    let line = (try? InputText.answer()) ?? nil
    return line?.trimmingCharacters(in: .whitespaces)
  }
}
