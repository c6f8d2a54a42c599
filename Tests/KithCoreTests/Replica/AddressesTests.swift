import Testing

@testable import KithCore

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
