internal import KithCrypto

/// Sends and merges devices' addresses; ``Contacts`` has the rules.
extension Replica {
  /// The addresses, by device, for a joiner at `address` that this device invited. `own`: this
  /// device's addresses (`Docs/Protocol/pairing.md`, "Inviting").
  package func addressesForJoiner(at address: String, own: [String]) -> [DeviceID: [String]] {
    contacts.forJoiner(at: address, inviter: keys.id, own)
  }

  /// Keeps a peer's address.
  mutating func rememberAddress(of id: SessionID) {
    guard let link = links[id], let device = link.device,
      link.peer.isDialled || link.peer.hello.port != 0
    else { return }
    contacts.note(contacts.meet(device, at: link.peer.address), of: device, from: id)
  }

  /// Forgets an address here. A peer that remembers it may tell it again.
  mutating func forget(address: String) {
    let rest = contacts.forget(address: address)
    guard !rest.isEmpty else { return }
    effects.append(
      .persist(rest.sorted { $0.key < $1.key }.map { .addresses($0.key, $0.value) }))
    effects.append(.addresses(rest))
  }

  mutating func sendAddresses(on id: SessionID) {
    send(addresses: contacts.addresses, on: id)
  }

  mutating func mergeAddresses(_ received: [DeviceID: [String]], from id: SessionID) {
    guard exchanges(id) else { return }
    for (device, addresses) in received.sorted(by: { $0.key < $1.key })
    where device != keys.id && roster.isMember(device) {
      contacts.note(contacts.merge(addresses, of: device), of: device, from: id)
    }
  }

  /// Stores, dials and tells changed addresses, if they are due.
  mutating func passOnAddresses() {
    let changes = contacts.takeChanges(at: now.monotonicMilliseconds)
    guard !changes.isEmpty else { return }
    effects += [
      .persist(changes.map { .addresses($0.device, $0.kept) }),
      .addresses(Dictionary(uniqueKeysWithValues: changes.map { ($0.device, $0.kept) })),
    ]
    for id in links.keys.sorted() where exchanges(id) {
      let news = changes.map { ($0.device, $0.news(on: id)) }
      send(addresses: Dictionary(uniqueKeysWithValues: news), on: id)
    }
  }

  private mutating func send(addresses: [DeviceID: [String]], on id: SessionID) {
    guard let link = links[id],
      let message = Contacts.message(addresses, to: link.device, at: link.peer.address)
    else { return }
    effects.append(.send(id, message))
  }
}
