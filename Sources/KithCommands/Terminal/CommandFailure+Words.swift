import Kith
import KithTerminal

/// The failures that several commands tell in the same words.
extension CommandFailure {
  /// Of keys that a store does not show.
  static func missing(_ key: String, in store: String, isSignedOut: Bool) -> CommandFailure {
    let place = isSignedOut ? " of this host, where nobody is signed in" : ""
    return CommandFailure(
      .notFound, "\(quoted(key)) is missing in the store \"\(Columns.printable(store))\"\(place)")
  }

  /// Of several keys, of which others were there.
  static func missing(_ keys: [String], in store: String) -> CommandFailure {
    CommandFailure(
      .notFound,
      "missing in the store \"\(Columns.printable(store))\": "
        + keys.map(quoted).joined(separator: ", "))
  }

  static func signedOut(_ directory: String) -> CommandFailure {
    CommandFailure(
      .directory, "\(directory): nobody is signed in here; \(CommonOptions.signingIn)")
  }

  private static func quoted(_ key: String) -> String {
    "\"\(Columns.printable(key, limit: 80))\""
  }
}
