import KithCrypto
import Testing

@testable import KithCore

/// The rule for addresses, without a replica.
@Suite struct ContactsTests {
  private let device = deviceKeys(1).id
  private let other = deviceKeys(2).id

  private func addresses(_ hosts: ClosedRange<Int>) -> [String] { hosts.map { "192.0.2.\($0):1" } }

  @Test func `a peer is told useful addresses of others`() throws {
    let addresses = [
      device: ["192.0.2.1:1", "127.0.0.1:1"], other: ["127.0.0.1:2"],
      deviceKeys(3).id: ["192.0.2.3:1"],
    ]
    func told(_ peer: DeviceID, _ address: String) throws -> [DeviceID: [String]]? {
      guard let bytes = Contacts.message(addresses, to: peer, at: address) else { return nil }
      let account = AccountID(Blake2b.digest256([]))
      guard case .addresses(let told)? = InboundMessage(decoding: bytes, account: account)?.body
      else { throw BrokenFixture() }
      return told
    }
    let third = deviceKeys(3).id
    #expect(
      try told(third, "192.0.2.3:1") == [device: ["192.0.2.1:1"]], "loopback is of no use there")
    #expect(try told(third, "127.0.0.1:5") == addresses.filter { $0.key != third })
    #expect(Contacts.message([device: ["127.0.0.1:1"]], to: other, at: "192.0.2.2:1") == nil)
  }

  private enum Event {
    case met(String)
    case told([String])
  }

  /// The addresses that are kept, and those that are told on, after the last event.
  @Test func `the rule, event by event`() {
    let a = "192.0.2.1:1", b = "192.0.2.2:1", c = "192.0.2.3:1"
    let full = addresses(1...8)
    let cases: [(String, [Event], Contacts.Outcome)] = [
      ("met once", [.met(a)], .changed(kept: [a], news: [a])),
      ("met again", [.met(a), .met(a)], .known),
      ("met elsewhere", [.met(a), .met(b)], .changed(kept: [b, a], news: [b])),
      ("met where it was before", [.met(a), .met(b), .met(a)], .changed(kept: [a, b], news: [])),
      ("told", [.told([a, b])], .changed(kept: [a, b], news: [a, b])),
      ("told again", [.told([a, b]), .told([b])], .known),
      ("met, then told", [.met(a), .told([b])], .changed(kept: [a, b], news: [b])),
      ("told, then met", [.told([a, b]), .met(b)], .changed(kept: [b, a], news: [])),
      (
        "told after the first four", [.told(addresses(1...5)), .told([addresses(6...6)[0]])],
        .changed(
          kept: addresses(1...4) + addresses(6...6) + addresses(5...5),
          news: addresses(6...6))
      ),
      (
        "told more than are kept: not told on", [.told(full), .told([addresses(9...9)[0]])],
        .changed(kept: addresses(1...4) + addresses(9...9) + addresses(5...7), news: [])
      ),
      (
        "met when all are kept", [.told(full), .met(c + "1")],
        .changed(kept: [c + "1"] + addresses(1...7), news: [c + "1"])
      ),
      ("no address", [.met("")], .known),
      ("no addresses", [.told(["a host:1", String(repeating: "h", count: 263)])], .known),
    ]
    for (name, events, wanted) in cases {
      var contacts = Contacts()
      var outcome = Contacts.Outcome.known
      for event in events {
        outcome =
          switch event {
          case .met(let address): contacts.meet(device, at: address)
          case .told(let addresses): contacts.merge(addresses, of: device)
          }
      }
      #expect(outcome == wanted, "\(name)")
      #expect(contacts.addresses[device]?.count ?? 0 <= Limits.addressesPerDevice)
    }
  }

  /// A peer that tells others in every message has them written once in a while.
  @Test func `changes come together, at most once a second`() {
    let (first, second) = (SessionID(rawValue: 1), SessionID(rawValue: 2))
    var contacts = Contacts()
    func learn(_ addresses: [String], of device: DeviceID, from session: SessionID) {
      contacts.note(contacts.merge(addresses, of: device), of: device, from: session)
    }
    #expect(contacts.changesDueAt == nil)
    learn(addresses(1...1), of: device, from: first)
    #expect(contacts.takeChanges(at: 50).map(\.kept) == [addresses(1...1)], "the first at once")
    #expect(contacts.changesDueAt == nil)
    learn(addresses(2...2), of: device, from: first)
    learn(addresses(3...3), of: device, from: second)
    learn(addresses(4...4), of: other, from: second)
    for number in 5...2_000 { learn(addresses(number...number), of: device, from: first) }
    #expect(contacts.takeChanges(at: 1_049).isEmpty)
    #expect(contacts.changesDueAt == 1_050)
    let changes = contacts.takeChanges(at: 1_050)
    #expect(changes.map(\.device) == [device, other].sorted())
    #expect(changes.map(\.kept.count).max() == Limits.addressesPerDevice)
    let ours = changes.first { $0.device == device }
    // To each session what others brought, if it is still kept.
    #expect(ours?.news(on: first) == addresses(3...3))
    #expect(ours?.news(on: second).contains(addresses(2...2)[0]) == true)
    learn(addresses(9...9), of: other, from: first)
    contacts.hurry()
    #expect(contacts.takeChanges(at: 1_051).map(\.device) == [other])
    learn(addresses(8...8), of: other, from: first)
    _ = contacts.forget(other)
    #expect(contacts.changesDueAt == nil)
  }

  @Test func `a device that is forgotten has no address`() {
    var contacts = Contacts([device: ["192.0.2.1:1"]])
    let had = [contacts.forget(device), contacts.forget(device)]
    #expect(had == [true, false])
    #expect(contacts.addresses.isEmpty)
  }

  @Test func `a peer is told what is useful to it`() {
    let all = ["127.0.0.1:1", "[::1]:1", "localhost:1", "[fe80::1%2]:1", "192.0.2.1:1"]
    #expect(Contacts.useful(all, at: "192.0.2.9:1") == ["192.0.2.1:1"])
    #expect(Contacts.useful(all, at: "127.0.0.1:9") == all.filter { !$0.contains("%") })
  }

  /// A reply has 64 KiB, of which the records take up to 48.
  @Test func `the addresses in a reply to a joiner were unbounded`() throws {
    let long = (0..<Limits.addressesPerDevice).map {
      String(repeating: "h", count: Limits.addressBytes - 2) + ":\($0)"
    }
    var known: [DeviceID: [String]] = [:]
    for seed in 3..<40 as Range<UInt64> { known[deviceKeys(seed).id] = long }
    let contacts = Contacts(known)
    let chosen = contacts.forJoiner(at: "192.0.2.9:1", inviter: device, ["192.0.2.1:1"])
    #expect(chosen[device] == ["192.0.2.1:1"])
    #expect(chosen.count > 2)
    let empty = JoinReply(isAccepted: true).encoded().count
    let reply = JoinReply(isAccepted: true, addresses: chosen).encoded()
    #expect(reply.count - empty <= Limits.joinAddressBytes)
    #expect(JoinReply(decoding: reply)?.addresses == chosen)
    // Those with the smallest ids, so that it is the same on each try.
    let others = chosen.keys.filter { $0 != device }.sorted()
    #expect(others == Array(known.keys.sorted().prefix(others.count)))
  }

  @Test func `an address is forgotten for all devices that have it`() {
    let (a, b) = ("192.0.2.1:1", "192.0.2.2:1")
    var contacts = Contacts([device: [a, b], other: [a], deviceKeys(3).id: [b]])
    let rest = contacts.forget(address: a)
    #expect(rest == [device: [b], other: []])
    #expect(contacts.addresses == [device: [b], deviceKeys(3).id: [b]])
    let none = contacts.forget(address: a)
    #expect(none.isEmpty)
  }
}

@Suite struct AddressesTests {
  /// The addresses at which a device was met are told on, except those without meaning for another
  /// host: a link-local address counts on one interface of the device that met it.
  @Test func `addresses of peers of peers are told, not those of one interface`() throws {
    let world = try TestWorld(devices: 3, seed: 66)
    let absent = world.devices[2].keys.id
    world.devices[0].replica.contacts = Contacts([
      absent: ["[fe80::1%2]:4114", "192.0.2.7:4114"]
    ])
    world.connect(0, 1)
    world.settle()
    #expect(world.devices[1].replica.contacts.addresses[absent] == ["192.0.2.7:4114"])
  }

  /// Each message made a commit, a change of the dialling and messages to others; the writer worked
  /// them off one by one before a program's write.
  @Test func `a flood of addresses was written one by one`() throws {
    let world = try TestWorld(devices: 3, seed: 67)
    world.connect(0, 1)
    world.settle()
    world.advance(milliseconds: 5_000)
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 0 }?.session)
    let absent = world.devices[2].keys.id
    func flood(_ number: Int) throws -> [Effect] {
      let told = [absent: (0..<8).map { "192.0.2.\($0):\(number + 1)" }]
      let bytes = try #require(Contacts.message(told, to: nil, at: "192.0.2.1:1"))
      let message = try #require(InboundMessage(decoding: bytes, account: world.account))
      return world.devices[0].replica.handle(.received(session, message), at: world.instant(of: 0))
    }
    func isWritten(_ effects: [Effect]) -> Bool {
      effects.contains { if case .persist = $0 { true } else { false } }
    }
    let first = try flood(0)
    #expect(isWritten(first))
    for number in 1...1_000 {
      let effects = try flood(number)
      let isQuiet = effects.allSatisfy { if case .wake = $0 { true } else { false } }
      #expect(isQuiet, "\(number): \(effects)")
    }
    world.advance(milliseconds: Limits.addressesMilliseconds)
    let kept = world.devices[0].replica.contacts.addresses[absent]
    #expect(kept?.count == Limits.addressesPerDevice)
    #expect(world.devices[0].disk.addresses[absent] == kept)
  }
}
