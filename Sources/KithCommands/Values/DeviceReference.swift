import Kith
import KithTerminal

/// A device as a person names it: by name, fingerprint, or the first digits of its id.
struct DeviceReference {
  private static let fewestDigits = 4

  private let text: String

  init(_ text: String) { self.text = text }

  /// Throws if no member matches, or more than one.
  func find(in devices: [NodeStatus.Device]) throws(CommandFailure) -> NodeStatus.Device {
    let members = devices.filter(\.isMember)
    let shown = Columns.printable(text, limit: 64)
    // Check names first: a name may look like digits of an id.
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
