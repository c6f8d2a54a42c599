import KithCrypto
import Testing

@testable import KithCore

/// Knowledge of the others' data if not every device is connected to every other: words that are
/// passed on.
@Suite struct WordTests {
  /// A line 0 – 1 – 2 …, settled.
  private func line(_ count: Int, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed)
    for index in 1..<count { world.connect(index - 1, index) }
    world.settle()
    pass(5_000, in: world)
    return world
  }

  /// Lets time pass in steps in which words go on by one device.
  private func pass(_ milliseconds: UInt64, in world: TestWorld) {
    for _ in 0..<max(1, milliseconds / 250) {
      world.advance(milliseconds: 250)
      world.settle()
    }
  }

  private func holds(_ peer: Int, for index: Int, in world: TestWorld) -> Bool {
    world.devices[index].replica.holders(of: TestWorld.store)[world.devices[peer].keys.id] == true
  }

  private func deliver(_ words: [Word], from: Int, to: Int, in world: TestWorld) throws {
    let session = try #require(world.links[[min(from, to), max(from, to)]]?.ends[0].session)
    for bytes in messages(words) {
      let message = InboundMessage(decoding: bytes, account: world.account)
      world.perform(.received(session, try #require(message)), on: to)
    }
  }

  private func messages(_ words: [Word]) -> [[UInt8]] {
    Have.messages(
      of: words.flatMap { WordGroup.groups(of: [$0]) },
      time: ClockReading(reading: .zero, isSynchronised: false))
  }

  /// A word that is later than all of a device's process, or one of another process.
  private func word(
    by index: Int, in world: TestWorld, process: UInt64? = nil, number: UInt64? = nil,
    latest: [ChainID: UInt64] = [:], vector: [ChainID: UInt64] = [:], signedBy: Int? = nil
  ) -> Word {
    let device = world.devices[index]
    let said = WordContent.Store(digest: WordContent.digest(of: vector), latest: latest)
    let content = WordContent([TestWorld.store: said])
    let version = Word.Version(
      number: number ?? world.now.wallMilliseconds + 1_000,
      process: process ?? device.process.shortName)
    let word = Word(content, version: version, account: world.account, keys: device.keys)
    guard let signedBy else { return word }
    // A word that another device signs in this one's name.
    let bytes = Word.signedBytes(
      account: world.account, device: device.keys.id, version: version, body: content.body)
    let forged = WordGroup.Said(
      device: device.keys.id.shortName, version: version,
      signature: world.devices[signedBy].keys.signing.sign(bytes))
    return Word(forged, by: device.keys.id, content: content)
  }

  private func kept(of index: Int, on other: Int, in world: TestWorld) -> Word.Version? {
    world.devices[other].replica.coverage.words[world.id(index)]?.version
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

  @Test func `a session that broke between two words makes them good`() throws {
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

  @Test func `words that got lost on a session are sent again after the next full Have`() throws {
    let world = try line(3, seed: 904)
    world.write([set("k", 1)], on: 0)
    world.settle()
    world.tamper = { from, to, message in from == 1 && to == 0 ? nil : message }
    pass(5_000, in: world)
    world.tamper = nil
    #expect(!holds(2, for: 0, in: world))
    // The first one may come while words are under way.
    pass(70_000, in: world)
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

  /// The host of device 2 died and came back from a backup, while device 0 still had a session with
  /// the dead process.
  @Test func `a device that was restored beside a hung session has what both say, and no more`()
    throws
  {
    let world = try TestWorld(devices: 3, seed: 916)
    world.connectAll()
    world.settle()
    let backup = world.devices[2].disk
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    #expect(holds(2, for: 0, in: world))
    world.devices[2].disk = backup
    world.hang(0, 2)
    try world.restart(2, isCopy: true)
    // Device 1 passes its word on, and does not send it what it lost.
    world.tamper = { from, to, message in
      guard from == 1, to == 2,
        let inbound = InboundMessage(decoding: message, account: world.account),
        case .batch = inbound.body
      else { return message }
      return nil
    }
    world.connect(1, 2)
    world.settle()
    pass(2_000, in: world)
    #expect(!holds(2, for: 0, in: world))
    world.tamper = nil
    pass(40_000, in: world)
    #expect(holds(2, for: 0, in: world))
  }

  @Test func `an older word that is told again changes nothing`() throws {
    let world = try line(3, seed: 906)
    let early = word(by: 2, in: world, number: TestWorld.origin - 1)
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    #expect(holds(2, for: 0, in: world))
    try deliver([early], from: 1, to: 0, in: world)
    #expect(holds(2, for: 0, in: world))
    #expect(kept(of: 2, on: 0, in: world) != early.version)
  }

  @Test func `nobody says in another's name what it covers`() throws {
    let world = try line(3, seed: 907)
    world.tamper = { from, to, message in from == 1 && to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    let truth = word(by: 2, in: world)
    let lie = word(
      by: 2, in: world, number: truth.version.number + 1, latest: [chain: 1], signedBy: 1)
    #expect(truth.isSigned(in: world.account) && !lie.isSigned(in: world.account))
    try deliver([truth], from: 1, to: 0, in: world)
    #expect(world.links[[0, 1]] != nil)
    try deliver([lie], from: 1, to: 0, in: world)
    #expect(!holds(2, for: 0, in: world))
    #expect(world.devices[0].closed.last == .protocolViolation)
    #expect(world.links[[0, 1]] == nil)
  }

  /// Otherwise each of a thousand in a message could be later than the one before it.
  @Test func `a message holds one word of a device`() throws {
    let world = try line(2, seed: 915)
    let said = (1...2 as ClosedRange<UInt64>).map { word(by: 1, in: world, number: $0) }
    func isDecoded(_ words: [Word]) -> Bool {
      messages(words).allSatisfy { InboundMessage(decoding: $0, account: world.account) != nil }
    }
    #expect(isDecoded([said[0]]))
    #expect(isDecoded([said[0], word(by: 0, in: world)]))
    #expect(!isDecoded(said))
  }

  @Test func `a word of more than is known here is not believed`() throws {
    let world = try line(3, seed: 908)
    world.write([set("k", 1)], on: 0)
    pass(5_000, in: world)
    let chain = try world.chain(of: 0)
    try deliver([word(by: 2, in: world, latest: [chain: 1 << 40])], from: 1, to: 0, in: world)
    let believed = world.devices[0].replica.believed(of: world.id(2), in: TestWorld.store)
    #expect(believed[chain] == 1)
  }

  @Test func `words of strangers are passed over, and those from the future count`() throws {
    let world = try line(3, seed: 909)
    let stranger = Founder.makeKeys(&world.random)
    let said = Word(
      word(by: 2, in: world).content, version: Word.Version(number: 7, process: 7),
      account: world.account, keys: stranger)
    let late = word(by: 2, in: world, number: Word.lastNumber - 1)
    try deliver([said, late], from: 1, to: 0, in: world)
    #expect(world.devices[0].replica.coverage.words[stranger.id] == nil)
    #expect(kept(of: 2, on: 0, in: world) == late.version)
    #expect(world.links[[0, 1]] != nil)
  }

  @Test func `a device that hears a later word of its own speaks above it`() throws {
    let world = try line(3, seed: 917)
    let ahead = word(
      by: 2, in: world, process: 7, number: world.now.wallMilliseconds + 3_600_000,
      latest: [try world.chain(of: 0): 1])
    try deliver([ahead], from: 1, to: 0, in: world)
    #expect(kept(of: 2, on: 0, in: world) == ahead.version)
    pass(40_000, in: world)
    let wanted = Word.Version(
      number: ahead.version.number + 1, process: world.devices[2].process.shortName)
    for index in 0..<3 { #expect(kept(of: 2, on: index, in: world) == wanted) }
    #expect(world.devices[2].reports.allSatisfy { $0 != .clone(world.id(2)) })
  }

  @Test func `a device whose last number somebody used reports a copy`() throws {
    let world = try line(2, seed: 918)
    let last = word(by: 1, in: world, process: 7, number: Word.lastNumber)
    for _ in 0..<2 { try deliver([last], from: 0, to: 1, in: world) }
    #expect(world.devices[1].reports.filter { $0 == .clone(world.id(1)) }.count == 1)
  }

  @Test
  func `a word of an earlier process does not count again after a later one was connected`()
    throws
  {
    let world = try line(3, seed: 914)
    world.tamper = { _, to, message in to == 2 ? nil : message }
    world.write([set("k", 1)], on: 0)
    world.settle()
    let chain = try world.chain(of: 0)
    try deliver([word(by: 2, in: world, latest: [chain: 1])], from: 1, to: 0, in: world)
    pass(1_000, in: world)
    #expect(holds(2, for: 0, in: world))
    world.advance(milliseconds: 2_000)
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
