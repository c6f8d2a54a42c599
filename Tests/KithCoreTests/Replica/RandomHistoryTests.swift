import KithCrypto
import Testing

@testable import KithCore

/// Random histories: writes, transactions and removals on devices that come and go, meet and part,
/// and are killed. In the end all that was acknowledged must be accounted for (design, section 12).
@Suite struct RandomHistoryTests {
  @Test(arguments: 1...40) func `devices converge and lose nothing`(seed: Int) throws {
    var history = try History(seed: UInt64(seed))
    try history.run(steps: 220)
    try history.heal()
    history.checkAccounts()
  }

  @Test func `the same seed gives the same run`() throws {
    func run() throws -> [[String]] {
      var history = try History(seed: 77)
      try history.run(steps: 150)
      try history.heal()
      return history.world.devices.map { $0.viewChanges.map { "\($0.store) \($0.changes)" } }
    }
    #expect(try run() == run())
  }
}

/// One run, and what was acknowledged in it.
struct History {
  let world: TestWorld
  let seed: UInt64
  var random: SeededEntropy
  /// Which device wrote what, in order; a write is acknowledged when it is durable.
  var writes: [(device: Int, id: WriteID)] = []

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededEntropy(seed: seed &* 7_919)
    let devices = Int.random(in: 2...5, using: &random)
    let tight = Policy(totalBytes: 600, keys: 12, keyBytes: 64, valueBytes: 500)
    world = try TestWorld(
      devices: devices, seed: seed, policy: Bool.random(using: &random) ? tight : .standard)
  }

  mutating func run(steps: Int) throws {
    for step in 0..<steps {
      try self.step()
      if step % 5 == 0 { world.checkInvariants("seed \(seed), step \(step)") }
    }
  }

  private mutating func step() throws {
    let device = world.devices.indices.randomElement(using: &random) ?? 0
    let other = world.devices.indices.randomElement(using: &random) ?? 0
    world.now.wallMilliseconds += UInt64.random(in: 0...20, using: &random)
    switch Int.random(in: 0..<100, using: &random) {
    case ..<55: write(on: device)
    case ..<65: world.flush(device)
    case ..<75: if device != other { world.connect(device, other) }
    case ..<82: if device != other { world.disconnect(device, other) }
    case ..<85: try world.restart(device)
    case ..<88: world.advance(milliseconds: 31_000)
    default:
      for _ in 0..<Int.random(in: 1...12, using: &random) { _ = world.deliverOne() }
    }
  }

  private mutating func write(on device: Int) {
    var operations: [KithCore.Operation] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let key = "key \(Int.random(in: 0..<16, using: &random))"
      if Int.random(in: 0..<5, using: &random) == 0 {
        operations.append(remove(key))
      } else {
        operations.append(set(key, blob(Int.random(in: 0...180, using: &random))))
      }
    }
    let id = world.write(operations, on: device, flush: Bool.random(using: &random))
    writes.append((device, id))
  }

  mutating func heal() throws {
    for index in world.devices.indices { world.flush(index) }
    world.connectAll()
    for _ in 0..<4 {
      world.settle()
      world.advance(milliseconds: 31_000)
    }
    world.settle()
    world.checkInvariants("seed \(seed), healed")
    world.checkConvergence("seed \(seed), healed")
    try world.checkDisks("seed \(seed), healed")
    world.checkConvergence("seed \(seed), restarted")
    for device in world.devices {
      #expect(!device.replica.hasUnpublished(TestWorld.store), "seed \(seed): drafts are left")
      #expect(device.replica.counters.divergences == 0, "seed \(seed): a divergence")
      #expect(device.replica.counters.rejected == 0, "seed \(seed): something was rejected")
      #expect(device.replica.counters.quarantined == 0, "seed \(seed): something was quarantined")
    }
  }

  /// Promise 3: each durable write of a key is the newest entry of it (shown or hidden), or a later
  /// stamp supersedes it, or its program was told that it was refused.
  func checkAccounts() {
    guard let state = world.devices[0].replica.stores[TestWorld.store]?.state else { return }
    for (device, id) in writes where world.devices[device].durable.contains(id) {
      let refused = world.devices[device].replica.refusals(of: TestWorld.store)
        .flatMap { $0.operations }
      for operation in (world.writes[id] ?? []).joined {
        let newest = state.slots[Key(operation.key)]?.newest.entry
        let isNewest = newest?.value == operation.value
        let isSuperseded = newest != nil
        let isTold = refused.contains(operation)
        let removesNothing = operation.value == nil
        #expect(
          isNewest || isSuperseded || isTold || removesNothing,
          "seed \(seed): \(operation.key) of \(device) is lost")
      }
    }
  }
}
