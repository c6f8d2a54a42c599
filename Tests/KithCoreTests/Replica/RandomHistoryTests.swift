import Foundation
import KithCrypto
import Testing

@testable import KithCore

/// Random histories: writes, transactions and removals on devices that come and go, meet and part,
/// and are killed. In the end all that was acknowledged must be accounted for (`Docs/Testing.md`,
/// "The promises").
@Suite struct RandomHistoryTests {
  /// As many as run in a few seconds; `KITH_HISTORIES=1...2000` runs more, `=72...72` one.
  static let seeds: ClosedRange<Int> = {
    let text = ProcessInfo.processInfo.environment["KITH_HISTORIES"] ?? "1...12"
    let ends = text.split(separator: ".").compactMap { Int($0) }
    return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : 1...12
  }()

  @Test(arguments: seeds) func `devices converge and lose nothing`(seed: Int) throws {
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

/// One run, and the writes that were acknowledged in it.
struct History {
  let world: TestWorld
  let seed: UInt64
  var random: SeededEntropy
  /// The writes with their devices, in order; a write is acknowledged when it is durable.
  var writes: [(device: Int, store: StoreIdentifier, id: WriteID)] = []
  var copies = 0

  static let stores = [
    TestWorld.store, StoreIdentifier("com.example.Others") ?? TestWorld.store,
  ]

  init(seed: UInt64) throws {
    self.seed = seed
    random = SeededEntropy(seed: seed &* 7_919)
    let devices = Int.random(in: 2...5, using: &random)
    let tight = Policy(totalBytes: 600, keys: 12, keyBytes: 64, valueBytes: 500)
    world = try TestWorld(
      devices: devices, seed: seed, policy: Bool.random(using: &random) ? tight : .standard)
    for device in world.devices.indices {
      // Any two differ by less than 60 s.
      world.clockErrors[device] = Int64.random(in: -25_000...25_000, using: &random)
    }
    deliverTwice()
  }

  /// One message in sixteen comes twice.
  private func deliverTwice() {
    var random = random
    world.tamper = { [unowned world] from, to, message in
      guard UInt8.random(in: 0..<16, using: &random) == 0,
        let inbound = InboundMessage(decoding: message, account: world.account),
        let pipe = world.links[[min(from, to), max(from, to)]]?.ends.first(where: { $0.to == to })
      else { return message }
      world.perform(.received(pipe.session, inbound), on: to)
      return message
    }
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
    case ..<85: try restart(device)
    case ..<88: world.advance(milliseconds: 31_000)
    default:
      for _ in 0..<Int.random(in: 1...12, using: &random) { _ = world.deliverOne() }
    }
  }

  private mutating func restart(_ device: Int) throws {
    let isCopy = copies < 6 && Int.random(in: 0..<8, using: &random) == 0
    if isCopy { copies += 1 }
    try world.restart(device, isCopy: isCopy)
  }

  private mutating func write(on device: Int) {
    let store = Self.stores.randomElement(using: &random) ?? TestWorld.store
    if world.devices[device].replica.stores[store] == nil {
      let policy = world.devices[device].replica.usage(of: TestWorld.store)?.policy ?? .standard
      world.perform(.open(store, policy), on: device)
    }
    var operations: [KithCore.Operation] = []
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let key = "key \(Int.random(in: 0..<16, using: &random))"
      if Int.random(in: 0..<5, using: &random) == 0 {
        operations.append(remove(key))
      } else {
        operations.append(set(key, blob(Int.random(in: 0...180, using: &random))))
      }
    }
    let id = world.write(
      operations, on: device, flush: Bool.random(using: &random), in: store)
    writes.append((device, store, id))
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
      for store in Self.stores {
        #expect(!device.replica.hasUnpublished(store), "seed \(seed): drafts are left")
      }
      #expect(device.replica.counters.divergences == 0, "seed \(seed): a divergence")
      #expect(device.replica.counters.rejected == 0, "seed \(seed): something was rejected")
      #expect(device.replica.counters.quarantined == 0, "seed \(seed): something was quarantined")
    }
  }

  /// Promise 3: each durable write of a key is the newest entry of it (shown or hidden), or a later
  /// stamp supersedes it, or its program was told that it, or a later one in its place, was refused.
  func checkAccounts() {
    for (index, (device, store, id)) in writes.enumerated() {
      guard world.devices[device].durable.contains(id), let draft = world.drafts[id],
        let state = world.devices[0].replica.stores[store]?.state
      else { continue }
      let stamp = Stamp(clock: draft.clock, device: world.devices[device].keys.id)
      let refused = world.devices[device].replica.refusals(of: store).flatMap { $0.operations }
      let later = writes[index...].filter { $0.device == device && $0.store == store }
        .flatMap { world.writes[$0.id] ?? [] }
      for operation in draft.operations {
        let newest = state.slots[Key(operation.key)]?.newest.entry
        let isNewest = newest?.stamp == stamp && newest?.value == operation.value
        let isSuperseded = newest.map { stamp < $0.stamp } ?? false
        let isTold = refused.contains { $0.key == operation.key && later.contains($0) }
        #expect(
          isNewest || isSuperseded || isTold,
          "seed \(seed): \(operation.key) of \(device) is lost")
      }
    }
  }
}
