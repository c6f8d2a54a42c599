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

/// Random histories of clocks that go years wrong and right again: devices meet in any order, some
/// called synchronised and some not, are killed, and heal. In the end all agree, and of a key that
/// one device alone wrote its last acknowledged write stands.
@Suite struct ClockHistoryTests {
  @Test(arguments: 1...12) func `own writes survive every healing, in order`(seed: Int) throws {
    var history = try ClockHistory(seed: UInt64(seed))
    try history.run(steps: 160)
    try history.heal()
  }
}

private struct ClockHistory {
  let world: TestWorld
  let seed: UInt64
  var random: SeededEntropy
  /// A device's last value of each key of its own, and the write that set it.
  var last: [Int: [String: (id: WriteID, value: PropertyListValue?)]] = [:]

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededEntropy(seed: seed &* 104_729)
    let devices = Int.random(in: 2...4, using: &random)
    world = try TestWorld(devices: devices, seed: seed)
    world.connectAll()
    world.settle()
    world.disconnectAll()
  }

  mutating func run(steps: Int) throws {
    for step in 0..<steps {
      try self.step()
      if step % 8 == 0 { world.checkInvariants("seed \(seed), step \(step)") }
    }
  }

  private mutating func step() throws {
    let device = world.devices.indices.randomElement(using: &random) ?? 0
    let other = world.devices.indices.randomElement(using: &random) ?? 0
    let passed = UInt64.random(in: 0...2_000, using: &random)
    world.now.wallMilliseconds += passed
    world.now.monotonicMilliseconds += passed
    switch Int.random(in: 0..<100, using: &random) {
    case ..<40: write(on: device)
    case ..<50: setClock(of: device)
    case ..<65: if device != other { world.connect(device, other) }
    case ..<70: if device != other { world.disconnect(device, other) }
    case ..<74:
      try world.restart(device)
      let isSynchronised = world.clockErrors[device] == nil && Bool.random(using: &random)
      world.perform(.clockStatus(isSynchronised: isSynchronised), on: device)
    case ..<80: world.advance(milliseconds: 31_000)
    default:
      for _ in 0..<Int.random(in: 1...12, using: &random) { _ = world.deliverOne() }
    }
  }

  private mutating func setClock(of device: Int) {
    let year: Int64 = 31_557_600_000
    // Two may be ahead alike, and then take in what each other publishes.
    let errors: [Int64?] = [nil, nil, 10 * year, 10 * year, -10 * year, 300_000, 90_000]
    world.clockErrors[device] = errors.randomElement(using: &random) ?? nil
    let isSynchronised = world.clockErrors[device] == nil && Bool.random(using: &random)
    world.perform(.clockStatus(isSynchronised: isSynchronised), on: device)
  }

  private mutating func write(on device: Int) {
    let number = Int.random(in: 0..<3, using: &random)
    let isOwn = Bool.random(using: &random)
    let key = isOwn ? "own \(device) \(number)" : "shared \(number)"
    let value: PropertyListValue? =
      Int.random(in: 0..<6, using: &random) == 0
      ? nil : .string("\(UInt32.random(in: 0...UInt32.max, using: &random))")
    let id = world.write([value.map { set(key, $0) } ?? remove(key)], on: device)
    if isOwn { last[device, default: [:]][key] = (id, value) }
  }

  mutating func heal() throws {
    world.clockErrors = [:]
    for index in world.devices.indices {
      world.perform(.clockStatus(isSynchronised: true), on: index)
      world.flush(index)
    }
    // Change sets that are ahead by less than ten minutes are taken as their time comes.
    for _ in 0..<22 {
      world.connectAll()
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    world.settle()
    world.checkInvariants("seed \(seed), healed")
    world.checkConvergence("seed \(seed), healed")
    try world.checkDisks("seed \(seed), healed")
    for (index, device) in world.devices.enumerated() {
      #expect(
        device.replica.clock.latest.milliseconds <= world.now.wallMilliseconds + 60_000,
        "seed \(seed): \(device.name)'s clock is ahead still")
      #expect(device.replica.counters.quarantined == 0, "seed \(seed): something was quarantined")
      #expect(!device.replica.hasUnpublished(TestWorld.store), "seed \(seed): drafts are left")
      for (key, write) in last[index] ?? [:] where device.durable.contains(write.id) {
        #expect(world.text(key, on: 0) == write.value, "seed \(seed): \(key) is another's")
      }
    }
  }
}
