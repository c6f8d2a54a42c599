import KithCrypto
import Testing

@testable import KithCore

/// Change sets that go out before the disk has synced them (`Docs/Decisions/early-sending.md`).
@Suite struct EarlySendingTests {
  private static let boots = (UInt8(1)...2).map { number in
    BootID(Digest128 { $0.copyBytes(from: [UInt8](repeating: number, count: 16)) })
  }

  /// Devices that know the runs of their hosts and have met. The mark of device 0 is durable unless
  /// `isMarked` is false.
  private func world(_ count: Int = 2, seed: UInt64, isMarked: Bool = true) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed)
    for index in world.devices.indices {
      world.devices[index].boot = Self.boots[0]
      try world.restart(index)
    }
    world.connectAll()
    world.settle()
    if isMarked {
      world.write([set("first", 1)], on: 0)
      world.settle()
      #expect(world.devices[0].disk.earlySending == Self.boots[0])
    }
    return world
  }

  /// Takes in a write, and hands out its round uncommitted.
  private func round(
    of operations: [KithCore.Operation], number: UInt64 = 900, in world: TestWorld
  ) throws -> Round {
    let device = world.devices[0]
    let write = WriteID(rawValue: number)
    _ = device.shell.handle(.write(write, TestWorld.store, operations), at: world.instant(of: 0))
    device.shell.expect(write)
    return try flushed(in: world)
  }

  private func flushed(in world: TestWorld) throws -> Round {
    let device = world.devices[0]
    _ = device.shell.handle(.flush, at: world.instant(of: 0))
    return try #require(Self.round(device.shell.next(at: world.instant(of: 0))))
  }

  private static func round(_ work: Shell.Work) -> Round? {
    if case .round(let round) = work { round } else { nil }
  }

  /// Sends what a round has written, and leaves the disk as it was.
  private func sendEarly(_ round: Round, in world: TestWorld) throws {
    let device = world.devices[0]
    let durable = device.disk
    // The world checks that what is sent is on disk.
    try device.storage.commit(round.mutations)
    for effect in round.earlySends { world.carryOut(effect, on: 0) }
    device.disk = durable
  }

  /// Commits a round of device 0, and does the rest of it.
  private func end(_ round: Round, in world: TestWorld) throws {
    let device = world.devices[0]
    try device.storage.commit(round.mutations)
    for effect in round.afterCommit { world.carryOut(effect, on: 0) }
    _ = device.shell.committed()
  }

  private func incarnation(_ world: TestWorld) -> Incarnation? {
    world.devices[0].disk.incarnation
  }

  @Test func `a change set goes before the sync, its claim and its acknowledgement after it`()
    throws
  {
    let world = try world(seed: 1)
    let round = try round(of: [set("k", 1)], in: world)
    #expect(round.earlySends.count == 1)
    #expect(round.writes == [WriteID(rawValue: 900)], "the caller waits for the commit")
    let later = round.afterCommit.compactMap { effect -> [UInt8]? in
      if case .send(_, let bytes) = effect { bytes } else { nil }
    }
    #expect(!later.isEmpty, "the vector that covers it")
    for bytes in later {
      let message = try #require(InboundMessage(decoding: bytes, account: world.account))
      guard case .have = message.facts else { throw ShellFixture.full }
    }
    for case .sendEarly(_, let bytes) in round.earlySends {
      let message = try #require(InboundMessage(decoding: bytes, account: world.account))
      guard case .batch = message.facts else { throw ShellFixture.full }
    }
    try sendEarly(round, in: world)
    try end(round, in: world)
    world.settle()
    world.checkConvergence("after the commit")
  }

  @Test func `the first change set waits for the sync of the mark`() throws {
    let world = try world(seed: 2, isMarked: false)
    #expect(world.devices[0].disk.earlySending == nil)
    let first = try round(of: [set("k", 1)], in: world)
    #expect(first.earlySends.isEmpty)
    #expect(first.mutations.contains { $0.key == .earlySending })
    try end(first, in: world)
    let second = try round(of: [set("k", 2)], number: 901, in: world)
    #expect(second.earlySends.count == 1)
    #expect(!second.mutations.contains { $0.key == .earlySending })
    try end(second, in: world)
  }

  @Test func `a host that ends between the two costs an incarnation, and is no copy`() throws {
    let world = try world(3, seed: 3)
    let before = incarnation(world)
    let clock = world.devices[0].replica.hybridClock
    let round = try round(of: [set("k", "lost")], in: world)
    try sendEarly(round, in: world)
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    while world.deliverOne(on: [[0, 1]]) {}
    let start = world.now.wallMilliseconds
    world.devices[0].boot = Self.boots[1]
    world.devices[0].reports = []
    try world.restart(0)
    #expect(incarnation(world) != before)
    #expect(world.devices[0].disk.earlySending == nil)
    #expect(world.devices[0].reports == [], "nobody copied the directory")
    #expect(world.devices[0].replica.hybridClock > clock)
    #expect(world.devices[0].replica.hybridClock.milliseconds > start + Limits.earlyMilliseconds)
    // What it writes now, before it hears of what it lost, is later.
    world.connect(0, 2)
    world.settle()
    world.write([set("k", "new")], on: 0)
    world.settle()
    world.connectAll()
    world.settle()
    world.checkConvergence("with what was lost")
    #expect(world.devices[1].views[TestWorld.store]?[Key("k")] == (try EncodedValue("new")))
    #expect(world.devices[0].reports == [])
  }

  @Test func `the same run of the host has lost nothing`() throws {
    let world = try world(seed: 4)
    let before = incarnation(world)
    try world.restart(0)
    #expect(incarnation(world) == before)
    // An unknown run may be another.
    world.devices[0].boot = nil
    try world.restart(0)
    #expect(incarnation(world) != before)
  }

  @Test func `a clean close removes the mark, and nothing goes early after it`() throws {
    let world = try world(seed: 5)
    let before = incarnation(world)
    let device = world.devices[0]
    _ = device.shell.handle(
      .write(WriteID(rawValue: 900), TestWorld.store, [set("k", 1)]), at: world.instant(of: 0))
    device.shell.close()
    let last = try flushed(in: world)
    #expect(last.earlySends.isEmpty)
    try end(last, in: world)
    #expect(device.disk.earlySending == nil)
    // A closed shell takes no input.
    world.hang(0, 1)
    device.boot = Self.boots[1]
    try world.restart(0)
    #expect(incarnation(world) == before)
  }

  @Test func `a sync that fails counts as an end of the host`() throws {
    let world = try world(seed: 6)
    let before = incarnation(world)
    let device = world.devices[0]
    for isSent in [false, true] {
      let now = world.instant(of: 0)
      _ = try round(of: [set("k", 1)], number: isSent ? 901 : 900, in: world)
      _ = device.shell.failed(ShellFixture.full, at: now)
      // The first attempt fails too, without having sent anything. Storage knows what was sent.
      for attempt in 0...1 {
        let replica = try Replica(
          account: world.account, keys: device.keys, snapshot: device.disk,
          process: ProcessID(world.random.draw()), entropy: SeededEntropy(seed: 1))
        world.now.monotonicMilliseconds += Shell.longestRetryMilliseconds
        guard case .reload = device.shell.next(at: world.instant(of: 0)) else {
          throw ShellFixture.full
        }
        _ = device.shell.reopen(replica, isCopy: isSent, at: world.instant(of: 0))
        let probe = try #require(Self.round(device.shell.next(at: world.instant(of: 0))))
        #expect(probe.mutations.contains { $0.key == .incarnation } == isSent)
        let start = world.instant(of: 0).wallMilliseconds
        let isLater = device.replica.hybridClock.milliseconds > start + Limits.earlyMilliseconds
        #expect(isLater == isSent)
        guard attempt == 1 else {
          _ = device.shell.failed(ShellFixture.full, at: world.instant(of: 0))
          continue
        }
        try end(probe, in: world)
      }
      #expect((incarnation(world) == before) == !isSent)
      world.disconnectAll()
      world.connectAll()
      world.settle()
    }
  }

  @Test func `drafts that were durable before are published after the sync`() throws {
    let world = try world(seed: 7)
    world.disconnectAll()
    world.write([set("old", 1)], on: 0)
    #expect(world.devices[0].disk.stores[TestWorld.store]?.drafts.count == 1)
    world.connectAll()
    let device = world.devices[0]
    let session = try #require(world.links[[0, 1]]?.ends[0].session)
    while device.replica.links[session]?[TestWorld.store].isPulled != true {
      guard world.deliverOne() else { break }
    }
    world.settle()
    #expect(device.reports == [])
    world.checkConvergence("with an old draft")
    // A draft of a commit under way is old too: its round is not done.
    world.disconnectAll()
    let under = try round(of: [set("under way", 1)], in: world)
    #expect(under.earlySends.isEmpty)
    #expect(device.replica.stores[TestWorld.store]?.drafts.hasStored == true)
  }

  @Test func `nothing is overtaken on its session`() throws {
    let (one, two) = (SessionID(rawValue: 1), SessionID(rawValue: 2))
    let persist = Effect.persist([.put(.clock, HybridTime(rawValue: 1).row)])
    let round = Round([
      .sendEarly(two, [0]), persist, .sendEarly(one, [1]), .send(two, [2]), .sendEarly(two, [3]),
      .sendEarly(one, [4]), .awaitDrain(one), .sendEarly(one, [5]),
    ])
    #expect(Self.bytes(round.beforeCommit) == [0])
    #expect(Self.bytes(round.earlySends) == [1, 4])
    #expect(Self.bytes(round.afterCommit) == [2, 3, 5])
    // Without a commit there is nothing to wait for.
    #expect(Self.bytes(Round([.sendEarly(one, [1])]).beforeCommit) == [1])
  }

  private static func bytes(_ effects: some Sequence<Effect>) -> [UInt8] {
    effects.flatMap { effect -> [UInt8] in
      switch effect {
      case .send(_, let bytes), .sendEarly(_, let bytes): bytes
      default: []
      }
    }
  }

  @Test func `a round that changes more than change sets sends nothing early`() throws {
    let session = SessionID(rawValue: 1)
    let chain = ChainID(
      device: try world(seed: 8).devices[0].keys.id, incarnation: Incarnation(rawValue: 1))
    let keys: [(RowKey, Bool)] = [
      (.clock, true), (.store(TestWorld.store, .vector(chain)), true),
      (.store(TestWorld.store, .draft(1)), true), (.incarnation, false), (.earlySending, false),
      (.record(Blake2b.digest256([1])), false), (.store(TestWorld.store, .horizon), false),
      (.store(TestWorld.store, .policy), false), (.store(TestWorld.store, .adopted), false),
    ]
    for (key, isEarly) in keys {
      // Also if the change comes after the message.
      for mutations in [[Mutation.put(key, [1])], [.remove(key)]] {
        let round = Round([
          .persist([.remove(.clock)]), .sendEarly(session, [1]), .persist(mutations),
        ])
        #expect(round.earlySends.isEmpty != isEarly, "\(key)")
      }
    }
  }

  @Test func `a clock far ahead of the host's sends after the sync`() throws {
    let world = try world(seed: 9)
    // Within the two seconds; then its peer's clock leads by more.
    for (lead, isEarly) in [(1_500, true), (30_000, false)] {
      world.clockErrors[1] = Int64(lead)
      world.write([set("theirs", .integer(Int64(lead)))], on: 1)
      world.settle()
      let round = try round(of: [set("k", .integer(Int64(lead)))], number: UInt64(lead), in: world)
      #expect(round.earlySends.isEmpty != isEarly, "\(lead) ms ahead")
      try sendEarly(round, in: world)
      try end(round, in: world)
      world.settle()
    }
  }

  /// Its clock may go back while it is off: a later write could get an earlier stamp.
  @Test func `a host without a clock of its own sends after the sync`() throws {
    let world = try world(seed: 12)
    for (number, hasHardware) in [false, true].enumerated() {
      _ = world.devices[0].shell.handle(
        .clockStatus(isSynchronised: true, hasHardware: hasHardware), at: world.instant(of: 0))
      let value = PropertyListValue.integer(Int64(number))
      let round = try round(of: [set("k", value)], number: 900 + UInt64(number), in: world)
      #expect(round.earlySends.isEmpty == !hasHardware)
      try sendEarly(round, in: world)
      try end(round, in: world)
      world.settle()
    }
  }

  @Test func `a device that has used eight incarnations sends after the sync`() throws {
    let world = try world(seed: 10, isMarked: false)
    var early: [Bool] = []
    for number in 0..<10 {
      world.write([set("first of \(number)", 1)], on: 0)
      world.settle()
      let round = try round(of: [set("k", 1)], number: UInt64(1_000 + number), in: world)
      early.append(!round.earlySends.isEmpty)
      try sendEarly(round, in: world)
      try end(round, in: world)
      world.settle()
      // The next run of the host: the mark is found if there is one.
      world.devices[0].boot = Self.boots[(number + 1) % 2]
      try world.restart(0)
      // Its clock is a little more than two seconds ahead.
      world.now.wallMilliseconds += 10
      world.connectAll()
      world.settle()
    }
    #expect(early == Array(repeating: true, count: 8) + [false, false])
    #expect(!world.devices[0].replica.hasNoIncarnations)
  }

  @Test func `a batch of another device is relayed before the sync, without a mark`() throws {
    let world = try world(3, seed: 11, isMarked: false)
    world.disconnect(1, 2)
    world.write([set("k", 1)], on: 1)
    let device = world.devices[0]
    let pipe = try #require(world.links[[0, 1]]?.ends.first { $0.to == 0 })
    let messages = pipe.messages.compactMap {
      InboundMessage(decoding: $0, account: world.account)
    }
    let inbound = try #require(
      messages.first { if case .batch = $0.facts { true } else { false } })
    _ = device.shell.handle(.received(pipe.session, inbound), at: world.instant(of: 0))
    let round = try flushed(in: world)
    #expect(round.earlySends.count == 1)
    #expect(!round.mutations.contains { $0.key == .earlySending })
    // If its sync fails, nothing of this device was lost.
    #expect(round.sendsEarly(of: world.devices[1].keys.id))
    #expect(!round.sendsEarly(of: device.keys.id))
    // Also if the batch supersedes an own change set.
    let own = ChangeSetReference(
      device: device.keys.id, incarnation: Incarnation(rawValue: 1), sequence: 1,
      digest: Blake2b.digest256([1]))
    let superseding = Round([
      .persist([.remove(.store(TestWorld.store, .changeSet(own)))]), .sendEarly(pipe.session, [1]),
    ])
    #expect(superseding.earlySends.count == 1 && !superseding.sendsEarly(of: device.keys.id))
  }
}
