import KithCrypto
import Testing

@testable import KithCore

/// Work that is done at once has the same result as work done one after the other, in any order.
@Suite struct RepeaterTests {
  private static let backwards: InboundMessage.Repeater = { count, body in
    for index in (0..<count).reversed() { body(index) }
  }

  @Test(arguments: [0, 1, 31, 32, 33, 100])
  func `values are in order, and every index is asked for once`(count: Int) {
    #expect(values(count, by: 32, with: Self.backwards) { $0 * 3 } == (0..<count).map { $0 * 3 })
    #expect(values(count, by: 32, with: nil) { $0 * 3 } == (0..<count).map { $0 * 3 })
  }

  @Test func `a batch taken in all at once gives the same state and effects`() throws {
    // A copy of the replica is fed what the original got.
    let world = try TestWorld(devices: 2, seed: 77)
    world.write((0..<100).map { set("k\($0)", .integer(Int64($0))) }, on: 0)
    var messages: [[UInt8]] = []
    world.tamper = { _, to, message in
      if to == 1 { messages.append(message) }
      return message
    }
    world.connectAll()
    var replica = world.devices[1].replica
    let session = try #require(replica.links.keys.first)
    world.settle()
    var twin = replica
    for message in messages {
      let one = try #require(InboundMessage(decoding: message, account: world.account))
      let many = try #require(
        InboundMessage(decoding: message, account: world.account, concurrently: Self.backwards))
      #expect(
        replica.handle(.received(session, one), at: world.instant(of: 1)).map { "\($0)" }
          == twin.handle(.received(session, many), at: world.instant(of: 1)).map { "\($0)" })
    }
    #expect(replica.view(of: TestWorld.store).count == 100)
    #expect(replica.view(of: TestWorld.store) == twin.view(of: TestWorld.store))
    #expect(
      replica.stores[TestWorld.store]?.digest() == twin.stores[TestWorld.store]?.digest())
  }
}
