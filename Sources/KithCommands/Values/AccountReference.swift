import Kith
import KithTerminal

/// An account of this host as a person names it: by its id or first digits. Nil: the only one.
struct AccountReference {
  private let text: String?

  init(_ text: String?) { self.text = text }

  /// Throws if no account matches, or more than one.
  func find(
    in known: [Accounts.KnownAccount]
  ) throws(CommandFailure) -> Accounts.KnownAccount {
    let prefix = text?.lowercased()
    let found = known.filter { $0.account.hex.hasPrefix(prefix ?? "") }
    if let one = found.first, Set(found.map(\.account)).count == 1, prefix != "" { return one }
    let problem: String =
      switch (prefix, found.isEmpty) {
      case (nil, true): "no account is here; run kith account create or kith join"
      case (nil, false): "several accounts are here; name one of them as kith account list shows it"
      case (let prefix?, true):
        "no account \(Columns.printable(prefix, limit: 64)) is here; see: kith account list"
      case (let prefix?, false): "several accounts begin with \(prefix); give more digits"
      }
    throw CommandFailure(.notFound, problem)
  }
}
