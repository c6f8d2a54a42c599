import Foundation
import Kith
import KithTerminal
import Synchronization

extension CommonOptions {
  /// See `Docs/CommandLine.md`.
  var passphraseSource: PassphraseSource? {
    PassphraseSource.first(
      file: passphraseFile, environment: ProcessInfo.processInfo.environment)
  }

  var passphraseQuestion: PassphraseQuestion {
    let source = passphraseSource
    return { () throws(KithError) in
      if let source { return try source.read() }
      return try PassphrasePrompt.known()
    }
  }

  /// Remembers the answer; for one directory.
  var passphraseQuestionAskedOnce: PassphraseQuestion {
    let ask = passphraseQuestion
    let answer = Mutex<Passphrase?>(nil)
    return { () throws(KithError) in
      try answer.withLock { known throws(KithError) in
        if let known { return known }
        let passphrase = try ask()
        known = passphrase
        return passphrase
      }
    }
  }
}

enum PassphrasePrompt {
  static func known() throws(KithError) -> Passphrase {
    guard let passphrase = try ask("Passphrase: ") else {
      throw KithError(
        .passphrase,
        "The device's secrets are under a passphrase, and there is no terminal to ask for it on. "
          + "Give --passphrase-file, or set \(PassphraseSource.fileVariable).")
    }
    return passphrase
  }

  /// Asks twice.
  static func new() throws(KithError) -> Passphrase {
    guard let passphrase = try ask("New passphrase: "), let again = try ask("Again: ") else {
      throw KithError(
        .passphrase,
        "There is no terminal to ask for the new passphrase on. Give --new-passphrase-file.")
    }
    guard passphrase.isSame(as: again) else {
      throw KithError(.passphrase, "The two differ; nothing has changed. Try again.")
    }
    return passphrase
  }

  /// Nil if there is no terminal.
  private static func ask(_ prompt: String) throws(KithError) -> Passphrase? {
    switch SecretPrompt.ask(prompt, limit: Passphrase.maximumBytes) {
    case .nobody: return nil
    case .givenUp: throw KithError(.passphrase, "No passphrase was given.")
    case .typed(var bytes):
      guard !bytes.isEmpty else { throw KithError(.passphrase, "The passphrase is empty.") }
      return Passphrase(zeroing: &bytes)
    }
  }
}
