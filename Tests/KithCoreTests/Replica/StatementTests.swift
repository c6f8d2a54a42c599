import KithCrypto
import Testing

@testable import KithCore

/// Knowledge of the others' data if not every device is connected to every other: statements that
/// are passed on.
@Suite struct StatementTests {
  /// A line 0 – 1 – 2 …, settled.
  private func line(_ count: Int, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed)
    for index in 1..<count { world.connect(index - 1, index) }
    world.settle()
    pass(5_000, in: world)
    return world
  }

  /// Lets time pass in steps in which statements go on by one device.
  private func pass(_ milliseconds: UInt64, in world: TestWorld) {
    for _ in 0..<max(1, milliseconds / 250) {
      world.advance(milliseconds: 250)
      world.settle()
    }
  }

  private func holds(_ peer: Int, for index: Int, in world: TestWorld) -> Bool {
    world.devices[index].replica.holders(of: TestWorld.store)[world.devices[peer].keys.id] == true
  }

  private func deliver(_ statements: [Statement], from: Int, to: Int, in world: TestWorld) throws {
    let session = try #require(world.links[[min(from, to), max(from, to)]]?.ends[0].session)
    for bytes in messages(statements) {
      let message = InboundMessage(decoding: bytes, account: world.account)
      world.perform(.received(session, try #require(message)), on: to)
    }
  }

  private func messages(_ statements: [Statement]) -> [[UInt8]] {
    Have.messages(
      telling: statements.map { statement in
        var group = StatementGroup(statement.extent)
        group.said = StatementGroup.groups(of: [statement])[0].said
        return group
      }, by: nil, time: ToldTime(reading: .zero, isSynchronised: false))
  }

  /// A statement that is later than all of a device's process; or one of a process that started at
  /// another time.
  private func statement(
    by index: Int, in world: TestWorld, started: UInt64? = nil, number: UInt32 = 1_000,
    entries: [ChainID: UInt64] = [:], vector: [ChainID: UInt64] = [:], signedBy: Int? = nil
  ) throws -> Statement {
    let device = world.devices[index]
    let extent = Extent(TestWorld.store, digest: Extent.digest(of: vector), entries: entries)
    let process = device.replica.coverage.started ?? .zero
    let age = StatementAge(
      started: started.map { HybridTime(milliseconds: $0) } ?? process, number: number)
    let statement = Statement(extent, age: age, account: world.account, keys: device.keys)
    guard let signedBy else { return statement }
    // A statement that another device signs in this one's name.
    let bytes = Statement.signedBytes(
      account: world.account, device: device.keys.id, age: age, body: extent.body)
    let said = StatementGroup.Said(
      device: device.keys.id.shortName, age: age,
      signature: world.devices[signedBy].keys.signing.sign(bytes))
    return Statement(said, by: device.keys.id, extent: extent)
  }

  @Test func `in a line the first device knows when the last has what it wrote, and not before`()
    throws
  {
    let world = try line(3, seed: 900)
    // The last hears nothing of the middle for now.
    world.tamper = { from, to, message in from == 1 && to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    pass(10_000, in: world)
    #expect(holds(1, for: 0, in: world))
    #expect(!holds(2, for: 0, in: world))
    world.tamper = nil
    // The full have is the safety net.
    pass(40_000, in: world)
    #expect(holds(2, for: 0, in: world))
    #expect(world.devices[2].replica.view(of: TestWorld.store).count == 1)
  }

  @Test func `in a long line it is known within seconds`() throws {
    let world = try line(8, seed: 901)
    world.write([set("k", 1)], on: 0)
    pass(4_000, in: world)
    for peer in 1..<8 { #expect(holds(peer, for: 0, in: world), "device \(peer)") }
  }

  @Test func `a device that joins the line later learns who has what`() throws {
    let world = try TestWorld(devices: 4, seed: 902)
    for index in 0..<2 { world.connect(index, index + 1) }
    world.write([set("k", 1)], on: 0)
    world.settle()
    pass(5_000, in: world)
    world.connect(2, 3)
    world.settle()
    pass(5_000, in: world)
    world.write([set("l", 1)], on: 3)
    pass(5_000, in: world)
    for peer in 0..<3 { #expect(holds(peer, for: 3, in: world), "device \(peer)") }
  }

  @Test func `a session that broke between two statements makes them good`() throws {
    let world = try line(3, seed: 903)
    world.write([set("k", 1)], on: 0)
    world.settle()
    world.disconnect(0, 1)
    pass(5_000, in: world)
    #expect(!holds(2, for: 0, in: world))
    world.connect(0, 1)
    world.settle()
    pass(2_000, in: world)
    #expect(holds(2, for: 0, in: world))
  }

  @Test func `statements that got lost on a session are sent with the next full have`() throws {
    let world = try line(3, seed: 904)
    world.write([set("k", 1)], on: 0)
    world.settle()
    world.tamper = { from, to, message in from == 1 && to == 0 ? nil : message }
    pass(5_000, in: world)
    world.tamper = nil
    #expect(!holds(2, for: 0, in: world))
    pass(40_000, in: world)
    #expect(holds(2, for: 0, in: world))
  }

  @Test func `a device that was restored and is not connected was taken to cover what it lost`()
    throws
  {
    let world = try line(3, seed: 905)
    let backup = world.devices[2].disk
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    #expect(holds(2, for: 0, in: world))
    world.devices[2].disk = backup
    try world.restart(2, isCopy: true)
    world.connect(1, 2)
    // It is told nothing that it lost; what it says goes on to the first.
    world.tamper = { from, to, message in
      guard from == 1, to == 2,
        let inbound = InboundMessage(decoding: message, account: world.account),
        case .batch = inbound.body
      else { return message }
      return nil
    }
    world.settle()
    pass(5_000, in: world)
    #expect(!holds(2, for: 0, in: world))
    world.tamper = nil
    pass(40_000, in: world)
    #expect(holds(2, for: 0, in: world))
  }

  @Test func `an older statement that is told again changes nothing`() throws {
    let world = try line(3, seed: 906)
    let early = try statement(by: 2, in: world, started: TestWorld.origin - 1)
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    #expect(holds(2, for: 0, in: world))
    try deliver([early], from: 1, to: 0, in: world)
    #expect(holds(2, for: 0, in: world))
    #expect(
      world.devices[0].replica.coverage.table[TestWorld.store, early.device]?.age != early.age)
  }

  @Test func `nobody says in another's name what it covers`() throws {
    let world = try line(3, seed: 907)
    world.tamper = { from, to, message in from == 1 && to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    let truth = try statement(by: 2, in: world)
    let lie = try statement(by: 2, in: world, number: 1_001, entries: [chain: 1], signedBy: 1)
    #expect(truth.isSigned(in: world.account) && !lie.isSigned(in: world.account))
    try deliver([truth], from: 1, to: 0, in: world)
    #expect(world.links[[0, 1]] != nil)
    try deliver([lie], from: 1, to: 0, in: world)
    #expect(!holds(2, for: 0, in: world))
    #expect(world.devices[0].closed.last == .protocolViolation)
    #expect(world.links[[0, 1]] == nil)
  }

  /// Else each of a thousand in a message could be later than the one before it.
  @Test func `a message holds one statement of a device about a store`() throws {
    let world = try line(2, seed: 915)
    let said = try (1...2 as ClosedRange<UInt32>).map {
      try statement(by: 1, in: world, number: $0)
    }
    func isDecoded(_ statements: [Statement]) -> Bool {
      messages(statements).allSatisfy {
        InboundMessage(decoding: $0, account: world.account) != nil
      }
    }
    #expect(isDecoded([said[0]]))
    #expect(isDecoded([said[0], try statement(by: 0, in: world)]))
    #expect(!isDecoded(said))
  }

  @Test func `a statement of more than was signed is not believed`() throws {
    let world = try line(3, seed: 908)
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    let chain = try world.chain(of: 0)
    let boast = try statement(by: 2, in: world, entries: [chain: 1 << 40])
    try deliver([boast], from: 1, to: 0, in: world)
    #expect(
      world.devices[0].replica.believed(of: world.devices[2].keys.id, in: TestWorld.store)[chain]
        == 1)
  }

  @Test func `statements of strangers and of processes from the future are not kept`() throws {
    let world = try line(3, seed: 909)
    let stranger = TestWorld.makeKeys(&world.random)
    let now = world.now.wallMilliseconds
    let said = Statement(
      Extent(TestWorld.store, digest: Extent.digest(of: [:]), entries: [:]),
      age: StatementAge(started: HybridTime(milliseconds: now), number: 1),
      account: world.account, keys: stranger)
    let late = try statement(by: 2, in: world, started: now + 3_600_000)
    try deliver([said, late], from: 1, to: 0, in: world)
    let table = world.devices[0].replica.coverage.table
    #expect(table[TestWorld.store, stranger.id] == nil)
    #expect(table[TestWorld.store, world.devices[2].keys.id]?.age != late.age)
    #expect(world.links[[0, 1]] != nil)
  }

  @Test func `while a device is connected only its own process speaks for it`() throws {
    let world = try line(2, seed: 910)
    world.tamper = { from, to, message in from == 0 && to == 1 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    let other = try statement(
      by: 1, in: world, started: world.now.wallMilliseconds + 1_000, entries: [chain: 1])
    try deliver([other], from: 1, to: 0, in: world)
    #expect(!holds(1, for: 0, in: world))
  }

  /// At once, and with a statement: otherwise words of its session count for nothing until the next
  /// full `Have`.
  @Test func `a device that speaks anew tells all its sessions its whole vectors`() throws {
    let world = try line(2, seed: 917)
    world.write([set("k", 1)], on: 1)
    pass(1_000, in: world)
    let chain = try world.chain(of: 1)
    let other = try statement(
      by: 1, in: world, started: world.now.wallMilliseconds + 1_000, entries: [chain: 1])
    try deliver([other], from: 0, to: 1, in: world)
    world.settle()
    let started = try #require(world.devices[1].replica.coverage.started)
    #expect(started > other.age.started)
    let device = world.devices[1].keys.id
    let heard = world.devices[0].replica.coverage.table[TestWorld.store, device]
    #expect(heard?.age == StatementAge(started: started, number: 1))
  }

  /// Seed 803000445: a copy whose clock was ahead, and generations that both used up.
  @Test func `a device that hears a refuted start of its own speaks anew, in its own time`()
    throws
  {
    let world = try line(2, seed: 919)
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    world.settle()
    func started() throws -> HybridTime {
      try #require(world.devices[1].replica.coverage.started)
    }
    let first = try started()
    let ahead = try statement(by: 1, in: world, started: world.now.wallMilliseconds + 3_600_000)
    try deliver([ahead], from: 0, to: 1, in: world)
    world.settle()
    let second = try started()
    #expect(first < second && second < ahead.age.started)
    #expect(world.devices[1].replica.hybridClock < ahead.age.started, "nothing follows it")
    let heard = world.devices[0].replica.coverage.table[TestWorld.store, world.id(1)]
    #expect(heard?.age == StatementAge(started: second, number: 1))
    // A peer may have heard it since, so the device does so again, but not at once.
    try deliver([ahead], from: 0, to: 1, in: world)
    #expect(try started() == second)
    pass(Limits.haveIntervalMilliseconds, in: world)
    try deliver([ahead], from: 0, to: 1, in: world)
    #expect(try started() > second)
  }

  /// Seed 406010240: a copy had ended, and its later statements were taken for those of the original.
  @Test func `processes that begin from one reading start apart`() throws {
    var starts = Set<HybridTime>()
    for process in 0..<4 {
      let world = try line(2, seed: 918)
      for _ in 0..<process { _ = world.random.draw(Digest128.self) }
      try world.restart(1)
      world.connect(0, 1)
      world.settle()
      starts.insert(try #require(world.devices[1].replica.coverage.started))
    }
    #expect(starts.count == 4)
  }

  @Test func `a statement of a later process, heard beside an earlier one, was never believed`()
    throws
  {
    let world = try line(3, seed: 913)
    world.connect(0, 2)
    world.settle()
    world.tamper = { _, to, message in to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    let later = try statement(
      by: 2, in: world, started: world.now.wallMilliseconds + 1_000, entries: [chain: 1])
    try deliver([later], from: 1, to: 0, in: world)
    pass(2_000, in: world)
    #expect(!holds(2, for: 0, in: world))
    world.disconnect(0, 2)
    pass(1_000, in: world)
    #expect(holds(2, for: 0, in: world))
  }

  @Test
  func `a statement of an earlier process does not count again after a later one was connected`()
    throws
  {
    let world = try line(3, seed: 914)
    world.tamper = { _, to, message in to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    let earlier = try statement(
      by: 2, in: world, started: world.now.wallMilliseconds, entries: [chain: 1])
    try deliver([earlier], from: 1, to: 0, in: world)
    #expect(holds(2, for: 0, in: world))
    world.advance(milliseconds: 1_000)
    try world.restart(2)
    world.connect(0, 2)
    world.settle()
    #expect(!holds(2, for: 0, in: world))
    world.disconnect(0, 2)
    pass(1_000, in: world)
    #expect(!holds(2, for: 0, in: world))
  }

  @Test func `nothing is passed on while nothing changes, and nothing is written`() throws {
    let world = try line(4, seed: 911)
    world.write([set("k", 1)], on: 0)
    pass(10_000, in: world)
    var sent: [[Int]: [Int]] = [:]
    world.tamper = { from, to, message in
      sent[[from, to], default: []].append(message.count)
      return message
    }
    let disks = world.devices.map(\.disk.clock)
    pass(120_000, in: world)
    for (link, sizes) in sent {
      #expect(sizes.count <= 6, "\(link) carried \(sizes)")
      #expect(sizes.allSatisfy { $0 < 1_024 })
    }
    #expect(world.devices.map(\.disk.clock) == disks)
  }

  @Test func `a device that does not cover old change sets is left behind, until it does`() throws {
    let world = try TestWorld(devices: 4, seed: 912)
    world.connect(0, 1)
    world.connect(2, 3)
    world.write([set("k", 1)], on: 0)
    world.settle()
    pass(120_000, in: world)
    #expect(
      world.devices[0].leftBehind == [world.devices[2].keys.id, world.devices[3].keys.id].sorted())
    world.connect(1, 2)
    pass(60_000, in: world)
    #expect(world.devices[0].leftBehind.isEmpty)
  }

  @Test func `random lines and trees come to know who has what, and never too early`() throws {
    for seed: UInt64 in 920..<928 {
      let count = 5 + Int(seed % 3)
      let world = try TestWorld(devices: count, seed: seed)
      for index in 1..<count {
        world.connect(Int.random(in: 0..<index, using: &world.random), index)
      }
      world.settle()
      for round in 0..<6 {
        let writer = Int.random(in: 0..<count, using: &world.random)
        world.write([set("k\(round)", 1)], on: writer, flush: false)
        for _ in 0..<40 {
          for index in 0..<count { world.flush(index) }
          _ = world.deliverOne()
          if Int.random(in: 0..<8, using: &world.random) == 0 { world.advance(milliseconds: 100) }
          try expectTruth(world, seed)
        }
      }
      world.settle()
      pass(5_000, in: world)
      for a in 0..<count {
        for b in 0..<count where a != b { #expect(holds(b, for: a, in: world), "seed \(seed)") }
      }
    }
  }

  /// A device said to cover something does cover it.
  private func expectTruth(_ world: TestWorld, _ seed: UInt64) throws {
    for device in world.devices {
      for other in world.devices where other !== device {
        let known = device.replica.believed(of: other.keys.id, in: TestWorld.store)
        let vector = other.replica.stores[TestWorld.store]?.log.vector ?? [:]
        let isTrue = known.allSatisfy { $0.value <= vector[$0.key] ?? 0 }
        try #require(isTrue as Bool, "seed \(seed): \(other.name) lacks what \(device.name) thinks")
      }
    }
  }
}
