import KithCrypto
import Testing

@testable import KithCore

/// A device whose data is ahead of its mended clock takes it back (`Docs/Protocol.md`, "Clocks").
@Suite struct MendingTests {
  private static let tenYears: Int64 = 10 * 31_557_600_000
  /// As far as another's time is taken over.
  private static let nearlyADay: Int64 = 20 * 3_600_000

  /// Devices that have met; of them one then wrote by itself, its clock years ahead.
  private func world(devices: Int = 2, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: devices, seed: seed)
    world.connectAll()
    world.settle()
    world.write([set("old", "before")], on: 0)
    world.settle()
    world.disconnectAll()
    return world
  }

  /// Sets a device's clock right, and has its kernel say so.
  private func mend(_ index: Int, in world: TestWorld) {
    world.clockErrors[index] = nil
    world.perform(.clockStatus(isSynchronised: true), on: index)
  }

  private func mendings(_ index: Int, in world: TestWorld) -> Int {
    world.devices[index].replica.counters.mendings
  }

  /// All devices meet, and everything is exchanged.
  private func meet(_ world: TestWorld) {
    for _ in 0..<3 {
      world.connectAll()
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    world.settle()
  }

  private func check(_ world: TestWorld, _ comment: Comment) throws {
    world.checkInvariants(comment)
    world.checkConvergence(comment)
    let limit = HybridTime(milliseconds: world.now.wallMilliseconds + 70_000)
    for device in world.devices {
      #expect(device.replica.clock.latest < limit, "\(comment): a clock is ahead still")
      #expect(device.disk.clock < limit, "\(comment): a clock is ahead on a disk")
      #expect(device.replica.counters.divergences == 0, "\(comment): a divergence")
      #expect(device.replica.counters.quarantined == 0, "\(comment): something was quarantined")
    }
    try world.checkDisks(comment)
    world.checkConvergence(comment)
  }

  @Test func `drafts ahead of a mended clock are stamped anew, in order`() throws {
    let world = try world(seed: 600)
    world.clockErrors[1] = Self.tenYears
    world.write([set("a", "first"), set("b", "first")], on: 1)
    world.write([set("b", "second"), remove("old")], on: 1)
    let seen = world.view(1)
    mend(1, in: world)
    #expect(mendings(1, in: world) == 1)
    #expect((world.view(1) == seen) as Bool)
    // Nothing of it was published: the incarnation goes on.
    #expect(world.devices[1].replica.replacement == nil)
    meet(world)
    #expect(world.text("a", on: 0) == "first")
    #expect(world.text("b", on: 0) == "second")
    #expect(world.text("old", on: 0) == nil)
    try check(world, "drafts")
  }

  @Test func `what was published ahead is published again under a new incarnation`() throws {
    let world = try world(devices: 4, seed: 601)
    let before = try world.chain(of: 1)
    // Two are ahead together, so that what they publish is taken by one another.
    for index in [1, 2] { world.clockErrors[index] = Self.tenYears }
    world.connect(1, 2)
    world.settle()
    world.write([set("old", "over"), set("new", "of 1")], on: 1)
    world.write([set("theirs", "of 2")], on: 2)
    world.settle()
    #expect(world.text("new", on: 2) == "of 1")
    world.disconnectAll()
    world.clockErrors = [:]
    // One clock is not enough to drop what others wrote.
    mend(1, in: world)
    #expect(mendings(1, in: world) == 0)
    #expect(world.devices[1].replica.clockStatus.dataAheadMilliseconds > 0)
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    world.connect(0, 1)
    world.settle()
    #expect(mendings(1, in: world) == 1)
    let after = try world.chain(of: 1)
    #expect(after != before)
    #expect(world.devices[1].replica.replacement?.incarnation == before.incarnation)
    #expect(world.text("new", on: 1) == "of 1")
    #expect(world.text("theirs", on: 1) == nil)
    world.connect(0, 1)
    world.settle()
    #expect(world.text("old", on: 0) == "over")
    mend(2, in: world)
    meet(world)
    for index in world.devices.indices {
      #expect(world.text("old", on: index) == "over")
      #expect(world.text("new", on: index) == "of 1")
      #expect(world.text("theirs", on: index) == "of 2")
    }
    try check(world, "published")
  }

  @Test func `what the dropped superseded comes back from others`() throws {
    let world = try world(devices: 3, seed: 602)
    for index in [1, 2] { world.clockErrors[index] = Self.tenYears }
    world.connect(1, 2)
    world.settle()
    world.write([set("old", "by 2")], on: 2)
    world.settle()
    #expect(world.text("old", on: 1) == "by 2")
    world.disconnectAll()
    world.clockErrors[1] = nil
    for index in [0, 1] { world.perform(.clockStatus(isSynchronised: true), on: index) }
    // Device 2 is away: its write is not taken for lost, but what it hid is needed now.
    for _ in 0..<3 {
      world.connect(0, 1)
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    #expect(mendings(1, in: world) == 1)
    #expect(world.text("old", on: 1) == "before")
    #expect(world.digest(0) == world.digest(1))
    mend(2, in: world)
    meet(world)
    #expect(world.text("old", on: 0) == "by 2")
    try check(world, "came back")
  }

  @Test func `a device that is not synchronised is mended by one that is`() throws {
    let world = try world(seed: 603)
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    world.clockErrors[1] = Self.nearlyADay
    world.write([set("k", "ahead")], on: 1)
    meet(world)
    #expect(mendings(1, in: world) == 1)
    #expect(world.text("k", on: 0) == "ahead")
    #expect(world.devices[1].replica.clockStatus.adoptedFrom == world.devices[0].keys.id)
    world.write([set("k", "later")], on: 0)
    world.settle()
    #expect(world.text("k", on: 1) == "later")
    try check(world, "adopted")
  }

  @Test func `a clock that is right but not synchronised says that its data is ahead`() throws {
    let world = try world(seed: 604)
    world.clockErrors[1] = Self.tenYears
    world.write([set("k", "ahead")], on: 1)
    world.clockErrors[1] = nil
    world.connectAll()
    world.settle()
    // Only the peer refuses; nobody's clock is called synchronised.
    #expect(world.devices[1].replica.clockStatus.dataAheadMilliseconds > Self.tenYears - 1_000)
    #expect(world.text("k", on: 0) == nil)
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    meet(world)
    #expect(world.text("k", on: 0) == "ahead")
    #expect(world.devices[1].replica.clockStatus.dataAheadMilliseconds == 0)
    try check(world, "told")
  }

  @Test func `years behind, a write that lost is told, and the next one wins`() throws {
    let world = try world(seed: 605)
    world.clockErrors[1] = -Self.tenYears
    try world.restart(1)
    world.write([set("lone", "of 1")], on: 1)
    world.now.wallMilliseconds += 10_000
    world.write([set("k", "of 0")], on: 0)
    // The hybrid clock never goes back, so what it had seen it still supersedes.
    world.write([set("old", "of 1")], on: 1)
    world.write([set("k", "of 1")], on: 1)
    mend(1, in: world)
    #expect(mendings(1, in: world) == 0)
    meet(world)
    #expect(world.text("lone", on: 0) == "of 1")
    #expect(world.text("old", on: 0) == "of 1")
    #expect(world.text("k", on: 1) == "of 0")
    #expect(
      world.devices[1].viewChanges.contains { change in
        change.reason == .serverChange && change.changes.contains { $0.key == Key("k") }
      })
    world.write([set("k", "next")], on: 1)
    world.settle()
    #expect(world.text("k", on: 0) == "next")
    try check(world, "behind")
  }

  /// A crash before the commit leaves all as it was, one after it nothing to do.
  @Test func `a crash at any moment leaves one state or the other`() throws {
    let world = try world(seed: 606)
    world.clockErrors[0] = Self.tenYears
    world.clockErrors[1] = Self.tenYears
    world.connectAll()
    world.settle()
    world.write([set("k", "ahead")], on: 0)
    world.settle()
    world.disconnectAll()
    world.clockErrors = [:]
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    let device = world.devices[0]
    let before = device.disk
    mend(0, in: world)
    let persists = mendings(0, in: world)
    #expect(persists == 1)
    let after = device.disk
    device.disk = before
    try world.restart(0)
    #expect(world.text("k", on: 0) == "ahead")
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    #expect(mendings(0, in: world) == 1)
    device.disk = after
    try world.restart(0)
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    #expect(mendings(0, in: world) == 0)
    #expect(world.text("k", on: 0) == "ahead")
    #expect(world.devices[0].replica.replacement != nil)
    meet(world)
    #expect(world.text("k", on: 1) == "ahead")
    try check(world, "crashed")
  }

  @Test func `mending is bounded, and nothing is lost at the bound`() throws {
    let world = try world(seed: 607)
    for round in 0..<20 {
      for index in [0, 1] {
        world.perform(.clockStatus(isSynchronised: false), on: index)
        world.clockErrors[index] = Self.tenYears
      }
      world.connectAll()
      world.settle()
      world.write([set("k \(round)", "ahead")], on: 1)
      world.settle()
      world.disconnectAll()
      world.clockErrors = [:]
      mend(1, in: world)
      mend(0, in: world)
    }
    let used = world.devices[1].replica.usedIncarnations
    #expect(used.count <= Limits.incarnations)
    for round in 0..<20 { #expect(world.text("k \(round)", on: 1) == "ahead") }
    #expect(world.devices[1].replica.clockStatus.dataAheadMilliseconds > 0)
  }

  @Test func `a copy that published ahead loses nothing when the original was mended`() throws {
    let world = try world(seed: 608)
    for index in [0, 1] { world.clockErrors[index] = Self.tenYears }
    world.connectAll()
    world.settle()
    world.write([set("shared", "of both")], on: 1)
    world.settle()
    let old = world.devices[1].disk
    world.write([set("lone", "of the original")], on: 1)
    world.settle()
    world.disconnectAll()
    world.clockErrors = [:]
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    mend(1, in: world)
    meet(world)
    world.write([set("shared", "since")], on: 1)
    world.settle()
    world.disconnectAll()
    // The old copy is put back, and nobody notices.
    world.devices[1].disk = old
    world.clockErrors[1] = Self.tenYears
    try world.restart(1)
    world.write([set("copy", "of the copy")], on: 1)
    mend(1, in: world)
    meet(world)
    #expect(world.text("shared", on: 0) != nil)
    #expect(world.text("lone", on: 0) == "of the original")
    #expect(world.text("copy", on: 0) == "of the copy")
    world.checkConvergence("copied")
  }

  // MARK: Liars

  @Test func `of two synchronised clocks that contradict each other the nearer counts`() throws {
    let world = try TestWorld(devices: 3, seed: 610)
    world.clockErrors[2] = 300_000
    world.clockErrors[1] = Self.nearlyADay
    for index in [0, 1] { world.perform(.clockStatus(isSynchronised: true), on: index) }
    world.connect(1, 2)
    world.settle()
    // Only the liar is known: its time is taken over.
    #expect(world.devices[2].replica.adoptedFrom == world.devices[1].keys.id)
    world.write([set("k", "of 2")], on: 2)
    world.settle()
    for _ in 0..<3 {
      world.connect(0, 2)
      world.connect(1, 2)
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    let status = world.devices[2].replica.clockStatus
    #expect(status.adoptedFrom == world.devices[0].keys.id)
    #expect(status.dataAheadMilliseconds == 0)
    #expect(
      status.differences.contains {
        $0.device == world.devices[1].keys.id && $0.outcome == .contradicted
      })
    #expect(world.text("k", on: 0) == "of 2")
  }

  @Test func `a synchronised clock that is behind what others published is not taken over`() throws
  {
    let world = try world(devices: 3, seed: 611)
    world.clockErrors[2] = -Self.nearlyADay
    world.perform(.clockStatus(isSynchronised: true), on: 2)
    world.connect(1, 2)
    world.settle()
    let status = world.devices[1].replica.clockStatus
    #expect(status.adoptedFrom == nil)
    #expect(status.differences.map(\.outcome) == [.behindData])
    #expect(mendings(1, in: world) == 0)
    #expect(world.text("old", on: 1) == "before")
  }
}
