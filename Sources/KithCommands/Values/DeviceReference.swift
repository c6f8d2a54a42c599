import Kith
import KithTerminal

/// A person's reference to a device: its name, its fingerprint, or the first digits of its id.
struct DeviceReference {
  /// The minimum number of digits of an id in a reference.
  private static let fewestDigits = 4

  private let text: String

  init(_ text: String) { self.text = text }

  /// Returns the only member that matches.
  ///
  /// - Throws: ``CommandFailure`` if there is none, or more than one.
  func find(in devices: [NodeStatus.Device]) throws(CommandFailure) -> NodeStatus.Device {
    let members = devices.filter(\.isMember)
    let shown = Columns.printable(text, limit: 64)
    // A name may look like digits of an id: names are checked first.
    let named = members.filter { $0.name.utf8.elementsEqual(text.utf8) }
    let found = named.isEmpty ? members.filter(isMeant) : named
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

  private func isMeant(_ device: NodeStatus.Device) -> Bool {
    func plain(_ text: String) -> String { text.filter { $0 != "-" && $0 != " " }.uppercased() }
    if plain(device.fingerprint) == plain(text) { return true }
    let digits = text.lowercased()
    return digits.utf8.count >= Self.fewestDigits && device.id.hex.hasPrefix(digits)
  }
}
