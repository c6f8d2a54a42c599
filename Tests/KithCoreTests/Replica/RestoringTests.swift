import Foundation
import KithCrypto
import Synchronization
import Testing

@testable import KithCore

/// Stores that are made from storage on several threads, in any order, are the same as those made
/// one after the other.
@Suite struct RestoringTests {
  enum Order: CaseIterable, Sendable {
    case backwards
    /// Each call has a thread, and all begin before one goes on.
    case atOnce

    var repeater: InboundMessage.Repeater {
      switch self {
      case .backwards: RestoringTests.backwards
      case .atOnce: RestoringTests.atOnce
      }
    }
  }

  private static let backwards: InboundMessage.Repeater = { count, body in
    for index in (0..<count).reversed() { body(index) }
  }

  private static let atOnce: InboundMessage.Repeater = { count, body in
    let begun = DispatchSemaphore(value: 0)
    let goOn = DispatchSemaphore(value: 0)
    let ended = DispatchSemaphore(value: 0)
    for index in 0..<count {
      Thread.detachNewThread {
        begun.signal()
        goOn.wait()
        body(index)
        ended.signal()
      }
    }
    for _ in 0..<count { begun.wait() }
    for _ in 0..<count { goOn.signal() }
    for _ in 0..<count { ended.wait() }
  }

  /// The calls that each use of a repeater asked for.
  private final class Uses: Sendable {
    private let list = Mutex<[Int]>([])

    var counts: [Int] { list.withLock { $0 } }

    func noted(_ repeater: @escaping InboundMessage.Repeater) -> InboundMessage.Repeater {
      { count, body in
        self.list.withLock { $0.append(count) }
        repeater(count, body)
      }
    }
  }

  // MARK: Stores

  private static let damaged = store("Damaged")
  private static let drafted = store("Drafted")
  private static let empty = store("Empty")
  private static let unopened = store("Unopened")
  /// All stores of the second device, sorted.
  private static let stores = [damaged, drafted, empty, TestWorld.store, unopened]

  private static func store(_ name: String) -> StoreIdentifier {
    StoreIdentifier("com.example.\(name)") ?? { preconditionFailure() }()
  }

  /// Two devices that have met and parted. Then the second, which has all stores, wrote drafts.
  private static func world() throws -> TestWorld {
    let world = try TestWorld(devices: 2, seed: 1_400)
    for store in [damaged, drafted, empty] { world.perform(.open(store, .standard), on: 1) }
    world.perform(.open(unopened, .standard), on: 0)
    world.connectAll()
    world.settle()
    world.write((0..<40).map { set("k\($0)", .integer(Int64($0))) }, on: 0)
    world.write([set("a", 1)], on: 0, in: damaged)
    world.write([set("u", 1)], on: 0, in: unopened)
    world.settle()
    world.write([set("k1", "again"), remove("k2")], on: 1)
    world.write([set("b", 2)], on: 1, in: damaged)
    world.write([set("d", 1)], on: 1, in: drafted)
    world.settle()
    world.disconnectAll()
    world.write([set("k3", "later")], on: 1)
    world.write([set("c", 3)], on: 1, in: damaged)
    world.write([set("d", 2), set("e", 3)], on: 1, in: drafted)
    return world
  }

  /// Makes two rows of the second device unreadable: the first device's change set, and a draft.
  private static func damage(_ world: TestWorld) throws {
    let author = world.devices[0].keys.id
    let kept = world.devices[1].disk.stores[damaged]?.changeSets ?? [:]
    let reference = try #require(kept.keys.first { $0.device == author })
    world.devices[1].disk.stores[damaged]?.changeSets[reference]?.header = [1]
    world.devices[1].disk.stores[drafted]?.drafts[1_000] = [1]
  }

  /// Makes the second device's replica from a disk, on which the rows of some stores fail.
  private static func restored(
    _ disk: Snapshot, in world: TestWorld, failing errors: [StoreIdentifier: StorageError] = [:],
    concurrently repeater: InboundMessage.Repeater? = nil
  ) throws -> Replica {
    let device = world.devices[1]
    let storage = MemoryStorage(disk)
    return try Replica(
      account: world.account, keys: device.keys, outline: storage.outline(),
      process: device.process, entropy: SeededEntropy(seed: 1), concurrently: repeater
    ) { (keys) throws(StorageError) in
      if let store = keys.first?.store, let error = errors[store] { throw error }
      return try storage.rows(keys)
    }
  }

  /// The contents of a replica's store.
  private struct Contents: Equatable {
    var view: [Key: EncodedValue]
    var digest: Digest256?
    var vector: [ChainID: UInt64]
    var changeSets: Set<ChangeSetReference>?
    var drafts: [LocalWrite]?
    var history: [PastValue]
    var missing: StoreLoss?

    init(_ store: StoreIdentifier, of replica: Replica) {
      var replica = replica
      let seen = replica.inspect(store)
      view = replica.view(of: store)
      digest = replica.digest(of: store)
      vector = replica.covered(of: store)
      changeSets = seen?.changeSets
      drafts = seen?.drafts
      history = replica.keptHistory(of: store)
      missing = replica.stores[store]?.missing
    }
  }

  private func check(
    _ replica: Replica, isLike other: Replica, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(replica.storeIdentifiers == Self.stores, sourceLocation: sourceLocation)
    #expect(other.storeIdentifiers == Self.stores, sourceLocation: sourceLocation)
    #expect(replica.counters.damaged == other.counters.damaged, sourceLocation: sourceLocation)
    for store in Self.stores {
      #expect(
        (Contents(store, of: replica) == Contents(store, of: other)) as Bool, "\(store)",
        sourceLocation: sourceLocation)
    }
  }

  // MARK: Inputs

  /// Restarts the second device, and returns its start, all that the first sends to it until both
  /// have the same, and a write.
  private static func inputs(in world: TestWorld) throws -> [Input] {
    let first = world.devices[0]
    let peer = SessionPeer(
      transportKey: first.keys.transportPublicKey,
      hello: first.replica.hello(port: 4_000, at: world.instant(of: 0)), isDialled: true,
      address: "127.0.0.1:4000")
    var messages: [[UInt8]] = []
    world.tamper = { _, to, message in
      if to == 1 { messages.append(message) }
      return message
    }
    try world.restart(1)
    world.connectAll()
    world.settle()
    let session = SessionID(rawValue: 1)
    var inputs: [Input] = [.start(isCopy: false), .connected(session, peer)]
    for message in messages {
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      inputs.append(.received(session, inbound))
    }
    let write = Input.write(WriteID(rawValue: 1_000), drafted, [set("f", 4)])
    return inputs + [.flush, write, .flush]
  }

  private func mutations(of effects: [Effect]) -> [Mutation] {
    effects.flatMap { effect -> [Mutation] in
      if case .persist(let mutations) = effect { mutations } else { [] }
    }
  }

  // MARK: Tests

  @Test(arguments: Order.allCases)
  func `stores made at once are the same, and so are all effects after`(order: Order) throws {
    let world = try Self.world()
    let whole = world.devices[1].replica
    try Self.damage(world)
    let disk = world.devices[1].disk
    let inputs = try Self.inputs(in: world)
    let uses = Uses()
    var serial = try Self.restored(disk, in: world)
    var other = try Self.restored(disk, in: world, concurrently: uses.noted(order.repeater))
    // One call for each store, which needs no others for its entries.
    #expect(uses.counts == [Self.stores.count])
    #expect(serial.counters.damaged == 2)
    #expect(serial.isLacking(Self.damaged))
    check(other, isLike: serial)

    let instant = world.instant(of: 1)
    for (number, input) in inputs.enumerated() {
      let expected = serial.handle(input, at: instant)
      let effects = other.handle(input, at: instant)
      #expect((mutations(of: effects) == mutations(of: expected)) as Bool, "input \(number)")
      #expect((effects.map { "\($0)" } == expected.map { "\($0)" }) as Bool, "input \(number)")
      if number == 0 {
        // Only the damaged store differs from before, by the row that does not open.
        for store in Self.stores where store != Self.damaged {
          #expect((serial.view(of: store) == whole.view(of: store)) as Bool, "\(store)")
        }
        #expect(serial.view(of: Self.damaged).keys.sorted() == ["b", "c"])
        #expect(serial.hasUnpublished(Self.drafted))
      }
    }
    // The first device has given the lost row back.
    #expect(!serial.isLacking(Self.damaged))
    #expect(serial.view(of: Self.damaged).keys.sorted() == ["a", "b", "c"])
    #expect(serial.view(of: Self.drafted).keys.sorted() == ["d", "e", "f"])
    check(other, isLike: serial)
  }

  @Test(arguments: Order.allCases)
  func `the entries of a single store are opened at once`(order: Order) throws {
    let world = try TestWorld.connected(devices: 2, seed: 1_401)
    world.write((0..<100).map { set("k\($0)", .integer(Int64($0))) }, on: 0)
    world.settle()
    let uses = Uses()
    let disk = world.devices[1].disk
    var restored = try Self.restored(disk, in: world, concurrently: uses.noted(order.repeater))
    // One change set, with 32 entries a call.
    #expect(uses.counts == [4])
    let digest = restored.digest(of: TestWorld.store)
    #expect((restored.view(of: TestWorld.store) == world.view(1)) as Bool)
    #expect(world.view(1).count == 100)
    #expect(digest == world.digest(1))
  }

  @Test(arguments: Order.allCases)
  func `the error of the first store that cannot be read counts`(order: Order) throws {
    let world = try Self.world()
    let disk = world.devices[1].disk
    let names = [Self.drafted, TestWorld.store, Self.unopened]
    var errors: [StoreIdentifier: StorageError] = [:]
    for name in names {
      errors[name] = StorageError(code: .damaged, path: name.rawValue, message: "on demand")
    }
    let first = try #require(errors[Self.drafted])
    let repeaters: [InboundMessage.Repeater?] = [nil, order.repeater]
    for repeater in repeaters {
      #expect(throws: ReplicaError.storage(first)) {
        try Self.restored(disk, in: world, failing: errors, concurrently: repeater)
      }
    }
  }
}
