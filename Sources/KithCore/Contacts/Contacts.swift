internal import KithCrypto

/// When devices were last seen, and the addresses at which they may be met
/// (`Docs/Protocol/discovery.md`, "Addresses"): at most ``Limits/addressesPerDevice`` of each.
///
/// An address at which this device met the other comes first; addresses from third devices come
/// after the first ``Limits/addressesBeforeRelayed``. So no member can displace all addresses at
/// which a device was met, and a device that moved is found by third devices' addresses.
///
/// A peer can tell other addresses in every message. So changes are collected, and
/// ``takeChanges(at:)`` gives them out at most once in ``Limits/addressesMilliseconds``.
struct Contacts {
  /// The last contact with a device since the start.
  struct Meeting {
    /// When it was last seen, since 1970.
    var lastSeenMilliseconds: UInt64
    var handshake: Handshake?
  }

  /// The data of a device's last handshake.
  struct Handshake {
    /// Its version of Kith; empty if unknown.
    var software: String
    /// The device's clock minus ours.
    var clockOffsetMilliseconds: Int64
    /// Nil for an older epoch than the current one.
    var epoch: EpochID?
  }

  private(set) var meetings: [DeviceID: Meeting] = [:]
  /// In dialling order.
  private(set) var addresses: [DeviceID: [String]]
  /// The addresses to pass on, by device, each with the session that brought it.
  private var changes: [DeviceID: [String: SessionID]] = [:]
  /// When changes were last taken, by the monotonic clock; nil: they are due at once.
  private var changesTakenAt: UInt64?

  enum Outcome: Equatable {
    case known
    /// Store and dial `kept`, all addresses of the device. Tell other peers `news`, unless it is
    /// empty. See ``Contacts/note(_:of:from:)``.
    case changed(kept: [String], news: [String])
  }

  init(_ addresses: [DeviceID: [String]] = [:]) {
    self.addresses = addresses
  }

  /// Notes the address at which this device met another.
  mutating func meet(_ device: DeviceID, at address: String) -> Outcome {
    guard Limits.isAddress(address) else { return .known }
    let old = addresses[device] ?? []
    return setAddresses(
      [address] + old.filter { $0 != address }, of: device,
      news: old.contains(address) ? [] : [address])
  }

  /// Merges addresses that a peer sent. They are passed on only if all fit; otherwise addresses
  /// would displace each other for ever.
  mutating func merge(_ received: [String], of device: DeviceID) -> Outcome {
    let old = addresses[device] ?? []
    let added = received.filter { Limits.isAddress($0) && !old.contains($0) }
    let first = old.prefix(Limits.addressesBeforeRelayed)
    let fits = old.count + added.count <= Limits.addressesPerDevice
    return setAddresses(
      first + added + old.dropFirst(first.count), of: device, news: fits ? added : [])
  }

  private mutating func setAddresses(
    _ ranked: [String], of device: DeviceID, news: [String]
  ) -> Outcome {
    let kept = Array(ranked.prefix(Limits.addressesPerDevice))
    guard kept != addresses[device] ?? [] else { return .known }
    addresses[device] = kept
    return .changed(kept: kept, news: news)
  }

  /// Forgets an address of any device. Returns all that remain of those that had it.
  mutating func forget(address: String) -> [DeviceID: [String]] {
    let rest = addresses.filter { $0.value.contains(address) }
      .mapValues { $0.filter { $0 != address } }
    for (device, kept) in rest { addresses[device] = kept.isEmpty ? nil : kept }
    return rest
  }

  /// Forgets a device. Returns whether it had an address.
  mutating func forget(_ device: DeviceID) -> Bool {
    (meetings[device], changes[device]) = (nil, nil)
    return addresses.removeValue(forKey: device) != nil
  }

  // MARK: Meetings

  /// A device sent something.
  mutating func note(_ device: DeviceID, at milliseconds: UInt64) {
    meetings[device, default: Meeting(lastSeenMilliseconds: 0)].lastSeenMilliseconds = milliseconds
  }

  /// A device made something that a carrier brought.
  mutating func note(_ device: DeviceID, noEarlierThan milliseconds: UInt64) {
    note(device, at: max(milliseconds, meetings[device]?.lastSeenMilliseconds ?? 0))
  }

  /// A device finished a handshake.
  mutating func note(_ device: DeviceID, _ handshake: Handshake, at milliseconds: UInt64) {
    meetings[device] = Meeting(lastSeenMilliseconds: milliseconds, handshake: handshake)
  }

  // MARK: Changes

  /// A device's addresses, to store and to dial.
  struct Change {
    let device: DeviceID
    let kept: [String]
    fileprivate let news: [String: SessionID]

    /// The addresses to tell on a session.
    func news(on session: SessionID) -> [String] {
      kept.filter { address in news[address].map { $0 != session } == true }
    }
  }

  /// Notes a change until it is taken. Its news came on a session, on which it need not be sent.
  mutating func note(_ outcome: Outcome, of device: DeviceID, from source: SessionID) {
    guard case .changed(_, let news) = outcome else { return }
    changes[device, default: [:]].merge(
      news.map { ($0, source) }, uniquingKeysWith: { old, _ in old })
  }

  /// When the noted changes are due, by the monotonic clock; nil: there are none.
  var changesDueAt: UInt64? {
    changes.isEmpty ? nil : changesTakenAt.map { $0 + Limits.addressesMilliseconds } ?? 0
  }

  /// Makes the noted changes due at once.
  mutating func hurry() { changesTakenAt = nil }

  /// Takes the changes if they are due, by device.
  mutating func takeChanges(at now: UInt64) -> [Change] {
    guard let due = changesDueAt, due <= now else { return [] }
    defer { (changes, changesTakenAt) = ([:], now) }
    return changes.sorted { $0.key < $1.key }
      .map { Change(device: $0.key, kept: addresses[$0.key] ?? [], news: $0.value) }
  }

  /// The message that tells a peer, met at `address`, of other devices' addresses; nil if none is
  /// useful to it.
  static func message(
    _ addresses: [DeviceID: [String]], to peer: DeviceID?, at address: String
  ) -> [UInt8]? {
    var message = WireMessage()
    for (device, addresses) in addresses.sorted(by: { $0.key < $1.key }) where device != peer {
      let useful = useful(addresses, at: address)
      guard !useful.isEmpty else { continue }
      var wire = WireDeviceAddresses()
      wire.device = .init(device.bytes)
      wire.addresses = useful
      message.addresses.devices.append(wire)
    }
    return message.addresses.devices.isEmpty ? nil : message.encodedBytes()
  }

  /// Returns the addresses that are useful to a peer met at `address`: loopback only on the same
  /// host, and none with a zone, which is of use only on the host with the interface.
  static func useful(_ addresses: [String], at address: String) -> [String] {
    addresses.filter { (isLoopback(address) || !isLoopback($0)) && !$0.contains("%") }
  }

  /// Returns the addresses for a device that joins from `address`: the inviter's first, then
  /// others' by id, up to ``Limits/joinAddressBytes`` in the message.
  func forJoiner(
    at address: String, inviter: DeviceID, _ own: [String]
  ) -> [DeviceID: [String]] {
    var chosen: [DeviceID: [String]] = [:]
    var remaining = Limits.joinAddressBytes
    let others = addresses.filter { $0.key != inviter }.sorted { $0.key < $1.key }
    for (device, known) in [(inviter, own)] + others.map({ ($0.key, $0.value) }) {
      let useful = Self.useful(known, at: address).prefix(Limits.addressesPerDevice)
      // Field numbers and lengths count too.
      remaining -= useful.reduce(DeviceID.byteCount + 8) { $0 + $1.utf8.count + 3 }
      guard remaining >= 0 else { break }
      if !useful.isEmpty { chosen[device] = Array(useful) }
    }
    return chosen
  }

  private static func isLoopback(_ address: String) -> Bool {
    address.hasPrefix("127.") || address.hasPrefix("[::1]") || address.hasPrefix("localhost:")
  }
}

extension Contacts {
  /// An address has no line break.
  static func row(_ addresses: [String]) -> [UInt8] {
    Array(addresses.joined(separator: "\n").utf8)
  }

  static func addresses(row: [UInt8]) -> [String]? {
    String(validating: row, as: UTF8.self)?.split(separator: "\n").map(String.init)
  }

}

extension Mutation {
  /// Replaces a device's addresses; an empty list removes them.
  package static func addresses(_ device: DeviceID, _ addresses: [String]) -> Mutation {
    addresses.isEmpty
      ? .remove(.addresses(device)) : .put(.addresses(device), Contacts.row(addresses))
  }
}
