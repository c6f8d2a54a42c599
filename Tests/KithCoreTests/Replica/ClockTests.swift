import KithCrypto
import Testing

@testable import KithCore

/// The device whose clock counts if clocks differ (`Docs/Protocol/clocks.md`).
@Suite struct ClockTests {
  /// Two devices: the first is synchronised, the second booted with its clock far behind.
  private func world(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.clockErrors[1] = -1_000_000_000_000
    try world.restart(1)
    world.perform(.clockStatus(isSynchronised: true), on: 0)
    world.connect(0, 1)
    world.settle()
    return world
  }

  private func hello(of index: Int, in world: TestWorld) -> Hello {
    world.devices[index].replica.hello(port: 1, at: world.instant(of: index))
  }

  @Test func `a clock that was taken over was added to the host's once that was mended`() throws {
    let world = try world(seed: 190)
    #expect(world.devices[1].replica.latestWall == world.now.wallMilliseconds)
    world.clockErrors[1] = 0
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    #expect(hello(of: 1, in: world).clock.milliseconds == world.now.wallMilliseconds)
    #expect(hello(of: 1, in: world).isSynchronised)
    world.write([set("k", 1)], on: 1)
    #expect(world.devices[1].disk.clock.milliseconds <= world.now.wallMilliseconds + 1_000)
    world.settle()
    #expect(world.text("k", on: 0) == 1)
    world.checkConvergence("mended")
  }

  @Test func `a step of the host's clock was added to one that was taken over`() throws {
    let world = try world(seed: 191)
    world.clockErrors[1] = 5_000_000
    world.advance(milliseconds: 1_000)
    #expect(hello(of: 1, in: world).clock.milliseconds == world.now.wallMilliseconds)
    world.write([set("k", 1)], on: 1)
    world.settle()
    #expect(world.text("k", on: 0) == 1)
    world.checkConvergence("stepped")
  }
}

/// By how much a clock may be led that nobody vouches for (`Docs/Decisions/clocks.md`).
@Suite struct LiarsClockTests {
  private static let threeYears: Int64 = 3 * 31_557_600_000
  private static let hour: Int64 = 3_600_000

  /// A device whose clock nobody sets has met one that says it is so much later, and synchronised.
  private func world(liar: Int64, host: Int64 = 0, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.clockErrors = [0: host, 1: liar]
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    world.connect(0, 1)
    world.settle()
    return world
  }

  private func outcome(_ world: TestWorld) -> NodeStatus.ClockDifference.Outcome? {
    world.devices[0].replica.clockStatus.differences.first?.outcome
  }

  private func follows(_ world: TestWorld) -> Bool {
    world.devices[0].replica.clockStatus.follows == world.devices[1].keys.id
  }

  @Test func `a liar's clock led a device years ahead, for ever`() throws {
    let world = try world(liar: Self.threeYears, seed: 194)
    #expect(outcome(world) == .tooFar)
    #expect(hello(in: world) == world.now.wallMilliseconds)
    #expect(world.devices[0].replica.exchangingSessions.isEmpty)
  }

  @Test(arguments: [23, -23]) func `within a day it is followed`(hours: Int64) throws {
    let world = try world(liar: hours * Self.hour, seed: 195)
    #expect(follows(world))
    world.write([set("k", 1)], on: 0)
    world.settle()
    #expect(world.text("k", on: 1) == 1)
  }

  @Test func `a clock before the software's release follows any`() throws {
    let world = try world(
      liar: 0, host: -Int64(TestWorld.origin - Software.releasedMilliseconds) - 1, seed: 196)
    #expect(follows(world))
    #expect(hello(in: world) == world.now.wallMilliseconds)
  }

  @Test func `a clock earlier than its own latest reading follows any`() throws {
    let world = try TestWorld(devices: 2, seed: 197)
    world.write([set("k", 1)], on: 0)
    world.clockErrors[0] = -2 * Self.hour
    world.clockErrors[1] = 48 * Self.hour
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    world.connect(0, 1)
    world.settle()
    #expect(follows(world))
  }

  private func hello(in world: TestWorld) -> UInt64 {
    world.devices[0].replica.hello(port: 1, at: world.instant(of: 0)).clock.milliseconds
  }
}

@Suite struct DifferingClocksTests {
  /// Two devices whose clocks nobody sets, and differ by ten minutes.
  private func world(seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: seed)
    world.clockErrors[1] = -600_000
    world.connect(0, 1)
    world.settle()
    #expect(world.devices[0].replica.exchangingSessions.isEmpty)
    return world
  }

  /// Found by the simulator: a clock that a person had set right was compared again only when the
  /// session was a day old.
  @Test func `clocks that differed were not compared again once they were mended`() throws {
    let world = try world(seed: 192)
    world.clockErrors[1] = 0
    world.advance(milliseconds: 31_000)
    world.settle()
    #expect(!world.devices[0].replica.exchangingSessions.isEmpty)
  }

  @Test func `a clock that is synchronised now is compared at once`() throws {
    let world = try world(seed: 193)
    world.clockErrors[1] = 0
    world.perform(.clockStatus(isSynchronised: true), on: 1)
    world.settle()
    #expect(!world.devices[0].replica.exchangingSessions.isEmpty)
  }
}

extension Replica {
  /// The time of the last input, as the replica took it.
  fileprivate var latestWall: UInt64 { now.wallMilliseconds }
}
