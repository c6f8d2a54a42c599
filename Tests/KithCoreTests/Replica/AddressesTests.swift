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
}
