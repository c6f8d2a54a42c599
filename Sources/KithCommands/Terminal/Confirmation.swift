import Foundation
import KithTerminal

/// A question whose answer is a person's.
enum Confirmation {
  /// Asks on the terminal; all but yes is no.
  static func isGiven(_ question: String, _ console: Console) -> Bool {
    console.prompt(question + " [y/N] ")
    let line = (try? InputText.answer()) ?? nil
    let answer = line?.trimmingCharacters(in: .whitespaces).lowercased()
    return answer == "y" || answer == "yes"
  }
}
