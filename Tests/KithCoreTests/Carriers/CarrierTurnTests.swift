import KithCrypto
import Testing

@testable import KithCore

/// Turns of whole devices on carriers in memory.
struct CarrierTurnTests {
  private let one: CarrierID
  private let two: CarrierID

  init() {
    var random = SeededEntropy(seed: 1)
    one = CarrierID(random.draw())
    two = CarrierID(random.draw())
  }

  private func write(_ key: String, of length: Int = 1) throws -> KithCore.Operation {
    KithCore.Operation(
      key: key, value: try EncodedValue(.string(String(repeating: "x", count: length))))
  }

  @Test func `with a revocation ends what a device says of a carrier`() throws {
    let world = try TestWorld(devices: 4, seed: 1)
    // Device 2's write comes to the second carrier in an object of device 1.
    world.write([try write("key")], on: 2)
    world.turn(of: 2, on: one)
    world.turn(of: 1, on: one)
    world.turn(of: 1, on: two)
    for _ in 0..<2 { world.turn(of: 3, on: two) }
    let reader = world.devices[3]
    #expect(reader.replica.view(of: TestWorld.store)["key"] != nil)
    #expect(reader.replica.heldSince(on: two) != nil)

    let revoked = world.devices[1].keys.id
    let staying = Set(world.devices.map(\.keys.id)).subtracting([revoked])
    world.perform(.revoke(revoked, keeping: staying), on: 0)
    world.perform(.learn(world.devices[0].replica.roster.records), on: 3)
    #expect(reader.replica.roster.isRevoked(revoked))
    #expect(reader.replica.heldSince(on: two) == nil)

    // It puts the write again: of the other object nothing counts.
    for _ in 0..<3 { world.turn(of: 3, on: two) }
    #expect(reader.replica.heldSince(on: two) != nil)
    world.turn(of: 0, on: two)
    #expect(world.devices[0].replica.view(of: TestWorld.store)["key"] != nil)
  }

  @Test func `two sides of a fork meet, though each object tells only part of the vector`() throws {
    let world = try TestWorld(devices: 4, seed: 5)
    world.connectAll()
    world.settle()
    for (device, side) in [(1, "left"), (2, "right")] {
      let entry = try world.entry(side, on: 0).plaintext()
      try world.hand([world.seal([entry], by: 0, sequence: 1)], above: 0, from: 0, to: device)
      world.disconnectAll()
      if device == 1 { world.connect(0, 2) }
      world.settle()
    }
    world.disconnectAll()
    // Device 3 lists before device 2 has put its side.
    world.write([try write("key")], on: 3)
    world.perform(.carrier(one, .attached(shortestMilliseconds: 5_000)), on: 3)
    world.perform(.carrier(one, .asked), on: 3)
    world.orders = []
    world.turn(of: 2, on: one)
    world.perform(.carrier(one, .listed([:])), on: 3)
    // It tells the fork's store before this one.
    let other = try #require(StoreIdentifier("com.example.Zoo"))
    world.perform(.open(other, .standard), on: 1)
    world.write([try write("lion")], on: 1, in: other)
    func round() {
      for device in 1...3 {
        world.now.wallMilliseconds += 1_000
        world.turn(of: device, on: one)
      }
    }
    for _ in 0..<4 { round() }
    for device in 1...3 {
      #expect(Set(world.view(device).keys) == ["left", "right", "key"])
      #expect(world.digest(device) == world.digest(1))
    }
    let count = world.carriers[one]?.count
    round()
    #expect(world.carriers[one]?.count == count)
  }

  @Test func `a large share comes in pieces, and its reader takes in all`() throws {
    let world = try TestWorld(devices: 2, seed: 2)
    world.devices[0].replica.pieceBytes = 1_000
    for number in 0..<8 {
      world.write([try write("key \(number)", of: 400)], on: 0)
      world.turn(of: 0, on: one)
    }
    world.turn(of: 0, on: two)
    #expect(world.carriers[two, default: [:]].count > 2)
    world.turn(of: 1, on: two)
    #expect(world.devices[1].replica.view(of: TestWorld.store).count == 8)
  }

  /// A full carrier would stay full.
  @Test func `the pieces of an object that could not be put go an hour later`() throws {
    let world = try TestWorld(devices: 1, seed: 6)
    world.devices[0].replica.pieceBytes = 1_000
    for number in 0..<8 {
      world.write([try write("key \(number)", of: 400)], on: 0)
      world.turn(of: 0, on: one)
    }
    world.perform(.carrier(two, .attached(shortestMilliseconds: 5_000)), on: 0)
    world.perform(.carrier(two, .asked), on: 0)
    world.orders = []
    world.perform(.carrier(two, .listed([:])), on: 0)
    guard case .put(let piece)? = world.orders.last?.order else { throw BrokenFixture() }
    #expect(piece.body.isPiece)
    world.perform(.carrier(two, .stored(piece.name, bytes: 5_000)), on: 0)
    world.perform(.carrier(two, .failed(retryAfterMilliseconds: nil)), on: 0)
    // The put is tried again, and fails again.
    for hour in 0..<2 {
      world.perform(.carrier(two, .asked), on: 0)
      world.orders = []
      world.perform(.carrier(two, .listed([piece.name: 5_000])), on: 0)
      if case .delete(let names)? = world.orders.last?.order {
        #expect(hour == 1 && names == [piece.name])
      } else {
        #expect(hour == 0)
      }
      world.perform(.carrier(two, .failed(retryAfterMilliseconds: nil)), on: 0)
      world.now.wallMilliseconds += 3_600_000
      world.now.monotonicMilliseconds += 3_600_000
    }
  }

  /// Servers refuse more by default, and would for ever.
  @Test func `a full store that was written at once goes in objects below 1,000,000 bytes`() throws
  {
    let world = try TestWorld(devices: 2, seed: 4)
    let writes = try (0..<1_000).map { try write("key \($0)", of: 1_000) }
    world.write(writes, on: 0)
    world.turn(of: 0, on: one)
    let sizes = world.carriers[one, default: [:]].values.map(\.count)
    #expect(sizes.count > 1 && sizes.allSatisfy { $0 <= 1_000_000 })
    world.turn(of: 1, on: one)
    #expect(world.devices[1].replica.view(of: TestWorld.store).count == 1_000)
  }

  @Test func `a share that would be another answer is not put`() throws {
    let world = try TestWorld(devices: 2, seed: 3)
    world.write([try write("key")], on: 0)
    world.perform(.carrier(one, .attached(shortestMilliseconds: 5_000)), on: 0)
    world.perform(.carrier(one, .asked), on: 0)
    guard case .list? = world.orders.last?.order else {
      Issue.record("no listing")
      return
    }
    world.orders = []
    world.perform(.carrier(one, .listed([:])), on: 0)
    guard case .put(let object)? = world.orders.last?.order else {
      Issue.record("nothing is put")
      return
    }
    // The store's limits change while the object is on its way.
    world.orders = []
    var policy = Policy.standard
    policy.keys += 1
    world.perform(.open(TestWorld.store, policy), on: 0)
    world.perform(.carrier(one, .stored(object.name, bytes: 4_096)), on: 0)
    #expect(world.devices[0].replica.heldSince(on: one) == nil)
    guard case .rest? = world.orders.first?.order else {
      Issue.record("the turn goes on")
      return
    }
  }

  /// A word of the highest number would replace all true ones.
  @Test func `a forged word on a carrier keeps no true one away`() throws {
    let world = try TestWorld(devices: 3, seed: 6)
    let victim = world.devices[0].keys.id
    world.write([try write("lie")], on: 1)
    world.perform(.carrier(one, .attached(shortestMilliseconds: 5_000)), on: 1)
    world.perform(.carrier(one, .asked), on: 1)
    world.orders = []
    world.perform(.carrier(one, .listed([:])), on: 1)
    guard case .put(var object)? = world.orders.last?.order,
      var said = object.body.words.first?.said.first
    else {
      Issue.record("no word is put")
      return
    }
    world.orders = []
    (said.device, said.version.number) = (victim.shortName, Word.lastNumber)
    object.body.words[0].said = [said]
    object.raiseLevel()
    world.carriers[one] = [
      object.name: try #require(try object.sealed(from: world.devices[1].storage))
    ]

    world.write([try write("truth")], on: 0)
    world.turn(of: 0, on: one)
    world.turn(of: 2, on: one)
    let told = world.devices[2].replica.coverage.words[victim]?.version
    #expect(told != nil && told == world.devices[0].replica.coverage.words[victim]?.version)
  }
}
