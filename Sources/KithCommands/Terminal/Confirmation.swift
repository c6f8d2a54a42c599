import Foundation
import Glibc
import KithTerminal

enum Confirmation {
  /// Throws if no person can be asked. `isSure`: nobody is to be. `purpose` follows `--yes`.
  static func demandPerson(
    unless isSure: Bool, _ purpose: String = ""
  ) throws(CommandFailure) {
    guard isSure || Terminal.hasInput else {
      throw CommandFailure(.refused, "standard input is no terminal; pass --yes\(purpose)")
    }
  }

  /// Throws unless the person agrees.
  static func demand(
    _ question: String, unless isSure: Bool, _ console: Console
  ) throws(CommandFailure) {
    try demandPerson(unless: isSure)
    guard isSure || isGiven(question, console) else {
      throw CommandFailure(.refused, "nothing was done")
    }
  }

  /// Every answer but yes is no.
  static func isGiven(_ question: String, _ console: Console) -> Bool {
    let answer = answer(to: question + " [y/N] ", console)?.lowercased()
    return answer == "y" || answer == "yes"
  }

  /// Returns the trimmed line; nil at the end of input. Drops input typed before the question.
  static func answer(to question: String, _ console: Console) -> String? {
    _ = tcflush(STDIN_FILENO, TCIFLUSH)
    console.prompt(Columns.coloured(question))
    let line = (try? InputText.answer()) ?? nil
    return line?.trimmingCharacters(in: .whitespaces)
  }
}
