internal import KithCrypto

/// Tells and learns devices' addresses; ``Contacts`` has the rules.
extension Replica {
  /// The addresses, by device, for a joiner at `address` that this device invited. `own`: this
  /// device's addresses (`Docs/Protocol/pairing.md`, "Inviting").
  package func addressesForJoiner(at address: String, own: [String]) -> [DeviceID: [String]] {
    contacts.forJoiner(at: address, inviter: keys.id, own)
  }

  /// Keeps a peer's address, and tells the others.
  mutating func rememberAddress(of id: SessionID) {
    guard let link = links[id], let device = link.device,
      link.peer.isDialled || link.peer.hello.port != 0
    else { return }
    carryOut(contacts.meet(device, at: link.peer.address), for: device, except: id)
  }

  mutating func sendAddresses(on id: SessionID) {
    send(addresses: contacts.addresses, on: id)
  }

  mutating func learn(_ learned: [DeviceID: [String]], from id: SessionID) {
    guard exchanges(id) else { return }
    for (device, addresses) in learned.sorted(by: { $0.key < $1.key })
    where device != keys.id && roster.isMember(device) {
      carryOut(contacts.learn(addresses, of: device), for: device, except: id)
    }
  }

  private mutating func carryOut(
    _ outcome: Contacts.Outcome, for device: DeviceID, except source: SessionID
  ) {
    guard case .changed(let kept, let news) = outcome else { return }
    effects += [.persist([.setAddresses(device, kept)]), .addresses([device: kept])]
    guard !news.isEmpty else { return }
    for id in links.keys.sorted() where id != source && exchanges(id) {
      send(addresses: [device: news], on: id)
    }
  }

  private mutating func send(addresses: [DeviceID: [String]], on id: SessionID) {
    guard let link = links[id],
      let message = Contacts.message(addresses, to: link.device, at: link.peer.address)
    else { return }
    effects.append(.send(id, message))
  }
}
