import KithTerminal

struct SyncShortfall: CustomStringConvertible {
  /// Devices that lack something.
  var missing: [String]
  /// Devices that have everything.
  var have: Int
  /// Nil: all.
  var wanted: Int?
  var connected: Set<String>
  /// Whether drafts wait for a peer.
  var isUnpublished: Bool
  /// Why carriers cannot be used.
  var carrierProblems: [String] = []

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
      parts.append("the writes of this device wait for a peer to be published")
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
    return (parts + carrierProblems).joined(separator: "; ")
  }

  private static func list(_ names: [String]) -> String {
    names.map { Columns.printable($0, limit: 64) }.joined(separator: ", ")
  }
}
