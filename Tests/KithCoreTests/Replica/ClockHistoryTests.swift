import KithCrypto
import Testing

@testable import KithCore

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
