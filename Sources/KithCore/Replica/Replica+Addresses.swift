internal import KithCrypto

extension Replica {
  /// Remembers where a peer was met, and tells the others.
  mutating func rememberAddress(of id: SessionID) {
    guard let session = sessions[id], let device = session.device,
      session.peer.isDialled || session.peer.hello.port != 0
    else { return }
    remember([session.peer.address], of: device, from: id, isFirstHand: true)
  }

  /// Tells a peer where other devices were met.
  mutating func sendAddresses(on id: SessionID) {
    send(addresses: addresses, on: id)
  }

  mutating func learn(_ learned: [DeviceID: [String]], from id: SessionID) {
    guard exchanges(id) else { return }
    for (device, addresses) in learned.sorted(by: { $0.key < $1.key })
    where device != keys.id && roster.isMember(device) {
      remember(addresses, of: device, from: id, isFirstHand: false)
    }
  }

  /// Where a device was really met comes first, the newest before all. Hearsay comes behind the first
  /// few, and so never takes their place, whatever members tell, but still that of older ones: a
  /// device that moved is found by hearsay.
  ///
  /// Hearsay that takes another address's place is not passed on: where more are told than are
  /// kept, they would take each other's place for ever.
  private mutating func remember(
    _ new: [String], of device: DeviceID, from source: SessionID, isFirstHand: Bool
  ) {
    let valid = new.filter(Limits.isAddress)
    let old = addresses[device] ?? []
    let added = valid.filter { !old.contains($0) }
    let ranked: [String]
    if isFirstHand {
      ranked = valid + old.filter { !valid.contains($0) }
    } else {
      let front = old.prefix(Limits.addressesBeforeHearsay)
      ranked = front + added + old.dropFirst(front.count)
    }
    let all = Array(ranked.prefix(Limits.addressesPerDevice))
    guard all != old else { return }
    addresses[device] = all
    effects.append(.persist([.setAddresses(device, all)]))
    effects.append(.addresses([device: all]))
    guard !added.isEmpty else { return }
    guard isFirstHand || old.count + added.count <= Limits.addressesPerDevice else { return }
    for id in sessions.keys.sorted() where id != source && exchanges(id) {
      send(addresses: [device: added], on: id)
    }
  }

  private mutating func send(addresses: [DeviceID: [String]], on id: SessionID) {
    guard let session = sessions[id] else { return }
    var message = WireMessage()
    for (device, addresses) in addresses.sorted(by: { $0.key < $1.key })
    where device != session.device {
      // Where this host reaches itself says nothing to another host, nor does one of its interfaces.
      let useful = addresses.filter {
        (Self.isLoopback(session.peer.address) || !Self.isLoopback($0)) && !$0.contains("%")
      }
      guard !useful.isEmpty else { continue }
      var wire = WireDeviceAddresses()
      wire.device = .init(device.bytes)
      wire.addresses = useful
      message.addresses.devices.append(wire)
    }
    guard !message.addresses.devices.isEmpty else { return }
    effects.append(.send(id, message.encodedBytes()))
  }

  private static func isLoopback(_ address: String) -> Bool {
    address.hasPrefix("127.") || address.hasPrefix("[::1]") || address.hasPrefix("localhost:")
  }
}
