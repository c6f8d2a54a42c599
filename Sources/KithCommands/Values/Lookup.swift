import Kith
import KithTerminal

extension [Accounts.KnownAccount] {
  /// Finds the account that a person means: by its id or first digits. Nil: the only one. Throws if
  /// none matches, or more than one.
  func find(_ text: String?) throws(CommandFailure) -> Accounts.KnownAccount {
    try demandName(text)
    let prefix = text?.lowercased()
    let found = filter { $0.account.hex.hasPrefix(prefix ?? "") }
    if let one = found.first, Set(found.map(\.account)).count == 1 { return one }
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

/// An empty name means nothing: it is a script's empty variable.
private func demandName(_ text: String?) throws(CommandFailure) {
  guard text != "" else { throw CommandFailure(.usage, "the name is empty") }
}

extension [NodeStatus.Device] {
  private static var fewestDigits: Int { 4 }

  /// Finds the member that a person means: by name, fingerprint, or the first digits of its id.
  /// Throws if none matches, or more than one.
  func find(_ text: String) throws(CommandFailure) -> NodeStatus.Device {
    try demandName(text)
    let members = filter(\.isMember)
    let shown = Columns.printable(text, limit: 64)
    // Check names first: a name may look like digits of an id.
    let named = members.filter { $0.name.utf8.elementsEqual(text.utf8) }
    let found = named.isEmpty ? members.filter { Self.isMeant($0, by: text) } : named
    guard let one = found.first else {
      throw CommandFailure(.notFound, "no device \(shown) is in the account; see: kith devices")
    }
    guard found.count == 1 else {
      let fingerprints = found.map(\.fingerprint).joined(separator: ", ")
      throw CommandFailure(
        .refused, "several devices are \(shown); give the fingerprint of one: \(fingerprints)")
    }
    return one
  }

  private static func isMeant(_ device: NodeStatus.Device, by text: String) -> Bool {
    func plain(_ text: String) -> String { text.filter { $0 != "-" && $0 != " " }.uppercased() }
    if plain(device.fingerprint) == plain(text) { return true }
    let digits = text.lowercased()
    return digits.utf8.count >= fewestDigits && device.id.hex.hasPrefix(digits)
  }
}

extension [CarrierSettings] {
  /// Finds the carrier that a person means: by its location, or a part that only one has; if there
  /// is one carrier, it need not be named.
  func find(_ text: String?) throws(CommandFailure) -> CarrierSettings {
    try demandName(text)
    guard let text else {
      guard let one = first, count == 1 else {
        throw isEmpty
          ? CommandFailure(.notFound, "there is no carrier; add one with: kith carrier add")
          : CommandFailure(.usage, "there are several carriers; name one: \(names)")
      }
      return one
    }
    let exact = filter { $0.location == text }
    let found = exact.isEmpty ? filter { $0.location.contains(text) || $0.kind == text } : exact
    guard let one = found.first else {
      throw CommandFailure(
        .notFound, "no carrier is \(Columns.printable(text, limit: 80)); see: kith carrier list")
    }
    guard found.count == 1 else {
      throw CommandFailure(.usage, "several carriers are meant: \(found.names)")
    }
    return one
  }

  private var names: String {
    map { Columns.printable($0.location, limit: 80) }.joined(separator: ", ")
  }
}
