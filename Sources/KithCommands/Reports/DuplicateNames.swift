package import Kith
import KithTerminal

package enum DuplicateNames {
  /// Sentences about names that several members have, in the order of the names.
  static func notices(_ devices: [NodeStatus.Device]) -> [String] {
    let members = devices.filter(\.isMember)
    return Dictionary(grouping: members) { Array($0.name.utf8) }.values
      .filter { $0.count > 1 }
      .sorted { $0[0].name < $1[0].name }
      .map { group in
        let name = Columns.printable(group[0].name, limit: 64)
        let fingerprints = group.map { Columns.printable($0.fingerprint) }.joined(separator: ", ")
        return
          "\(group.count) devices are called \(name): \(fingerprints). \(advice(group[0].fingerprint))"
      }
  }

  /// A sentence for a device whose name other members have. `devices` may contain the device
  /// itself.
  package static func notice(
    _ name: String, _ fingerprint: String, among devices: [NodeStatus.Device]
  ) -> String? {
    let others = devices.filter {
      $0.isMember && $0.fingerprint != fingerprint && $0.name.utf8.elementsEqual(name.utf8)
    }
    guard !others.isEmpty else { return nil }
    let shown = Columns.printable(name, limit: 64)
    let fingerprints = others.map { Columns.printable($0.fingerprint) }.joined(separator: ", ")
    return "The account has another device called \(shown): \(fingerprints). \(advice(fingerprint))"
  }

  private static func advice(_ fingerprint: String) -> String {
    "To tell them apart: kith devices rename \(Columns.printable(fingerprint)) NAME"
  }
}
