internal import KithCrypto

/// The addresses at which devices may be met, and the one rule for them (`Docs/Protocol.md`,
/// "Addresses"). An address at which this device met another comes first. An address that others
/// told comes after the first ``Limits/addressesBeforeHearsay``. Of each device,
/// ``Limits/addressesPerDevice`` are kept.
///
/// So no member can displace the addresses at which a device was met, and a device that moved is
/// still found by the addresses that others tell.
struct Contacts {
  /// The addresses by device, in the order in which they are dialled.
  private(set) var addresses: [DeviceID: [String]]

  /// The outcome of taking in an address that was met or told.
  enum Outcome: Equatable {
    /// Nothing changed.
    case known
    /// The device's addresses are `kept` now: store and dial them. Tell other peers `news`, unless
    /// it is empty.
    case changed(kept: [String], news: [String])
  }

  init(_ addresses: [DeviceID: [String]] = [:]) {
    self.addresses = addresses
  }

  /// Takes in the address at which this device met another.
  mutating func meet(_ device: DeviceID, at address: String) -> Outcome {
    guard Limits.isAddress(address) else { return .known }
    let old = addresses[device] ?? []
    return keep(
      [address] + old.filter { $0 != address }, of: device,
      news: old.contains(address) ? [] : [address])
  }

  /// Takes in the addresses of a device that a peer told. Those that displace others are not told
  /// on: if more are told than are kept, they would displace each other for ever.
  mutating func learn(_ told: [String], of device: DeviceID) -> Outcome {
    let old = addresses[device] ?? []
    let added = told.filter { Limits.isAddress($0) && !old.contains($0) }
    let first = old.prefix(Limits.addressesBeforeHearsay)
    let isRoom = old.count + added.count <= Limits.addressesPerDevice
    return keep(
      first + added + old.dropFirst(first.count), of: device, news: isRoom ? added : [])
  }

  private mutating func keep(
    _ ranked: [String], of device: DeviceID, news: [String]
  ) -> Outcome {
    let kept = Array(ranked.prefix(Limits.addressesPerDevice))
    guard kept != addresses[device] ?? [] else { return .known }
    addresses[device] = kept
    return .changed(kept: kept, news: news)
  }

  /// Forgets a device. Returns whether it had an address.
  mutating func forget(_ device: DeviceID) -> Bool { addresses.removeValue(forKey: device) != nil }

  /// The part of some addresses that is useful to a peer met at `address`. A loopback address is
  /// useful only on the same host, and an address with a zone only on the host that has the
  /// interface.
  static func useful(_ addresses: [String], at address: String) -> [String] {
    addresses.filter { (isLoopback(address) || !isLoopback($0)) && !$0.contains("%") }
  }

  /// The addresses for a device that joins over a connection from `address`: those of the inviter
  /// first, then those of other devices by id, up to ``Limits/joinAddressBytes`` in the message.
  func forJoiner(
    at address: String, inviter: DeviceID, _ own: [String]
  ) -> [DeviceID: [String]] {
    var chosen: [DeviceID: [String]] = [:]
    var room = Limits.joinAddressBytes
    let others = addresses.filter { $0.key != inviter }.sorted { $0.key < $1.key }
    for (device, known) in [(inviter, own)] + others.map({ ($0.key, $0.value) }) {
      let useful = Self.useful(known, at: address).prefix(Limits.addressesPerDevice)
      // Each address, device and list counts its field's number and length too.
      room -= useful.reduce(DeviceID.byteCount + 8) { $0 + $1.utf8.count + 3 }
      guard room >= 0 else { break }
      if !useful.isEmpty { chosen[device] = Array(useful) }
    }
    return chosen
  }

  private static func isLoopback(_ address: String) -> Bool {
    address.hasPrefix("127.") || address.hasPrefix("[::1]") || address.hasPrefix("localhost:")
  }
}
