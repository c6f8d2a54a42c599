import KithTerminal

/// Why `kith sync` gave up, and what to do.
struct SyncShortfall: CustomStringConvertible {
  /// Names of devices that lack something.
  var missing: [String]
  /// How many devices have everything.
  var have: Int
  /// How many were asked for; nil: all.
  var wanted: Int?
  /// Names of devices that are connected.
  var connected: Set<String>
  /// Whether writes wait here for a peer.
  var isUnpublished: Bool

  /// What a person who waits for others must hear where there are none.
  static let noOthers = "no other device is in the account; add one with: kith invite"

  var description: String {
    if missing.isEmpty && have == 0 { return Self.noOthers }
    if let wanted, wanted > have + missing.count {
      return "\(wanted) other devices are asked for, and the account has "
        + "\(have + missing.count); add some with: kith invite"
    }
    let away = missing.filter { !connected.contains($0) }
    let slow = missing.filter { connected.contains($0) }
    var parts: [String] = []
    if isUnpublished {
      parts.append("what this device wrote waits for a peer to be published")
    }
    if !away.isEmpty {
      parts.append(
        "\(Self.list(away)) \(away.count == 1 ? "is" : "are") not connected; start "
          + "\(away.count == 1 ? "its node" : "their nodes") with: kith run")
    }
    if !slow.isEmpty {
      parts.append(
        "\(Self.list(slow)) \(slow.count == 1 ? "does" : "do") not have everything yet; wait longer "
          + "with --timeout")
    }
    return parts.joined(separator: "; ")
  }

  private static func list(_ names: [String]) -> String {
    names.map { Columns.printable($0, limit: 64) }.joined(separator: ", ")
  }
}
