import KithCrypto
import Testing

@testable import KithCore

/// A member that makes stores under limits of its own choice fills no other's memory or disk.
@Suite struct AuthorBudgetTests {
  /// Hands large values of an author to device 1, in so many stores, and returns what is kept of it.
  private func fill(
    _ stores: Int, of world: TestWorld, changeSets: Int, by index: Int = 0
  ) throws -> [Int] {
    let value = try EncodedValue(.string(String(repeating: "v", count: (2 << 20) - 16)))
    let names = (0..<stores).compactMap { StoreIdentifier("fill\(index)of\($0)") }
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    for name in names {
      for number in 0..<changeSets {
        let clock = world.devices[index].replica.tick()
        let stamp = Stamp(clock: clock, device: world.devices[index].keys.id)
        let entry = Entry(
          key: Key("k\(number)"), stamp: stamp, content: .value(value),
          claim: Claim(clock: clock, device: stamp.device, group: 0))
        let changeSet = try world.seal(
          [entry.plaintext()], by: index, sequence: UInt64(number + 1), for: name)
        let batch = Batch(
          store: name, changeSets: [changeSet],
          covers: [
            Cover(chain: changeSet.header.chain, from: UInt64(number), through: UInt64(number + 1))
          ])
        if number == 0 {
          let have = Have(
            number: 1, isWhole: true, listsAll: false,
            stores: [
              StoreHave(
                store: name, vector: [:], digest: nil, policy: .maximum)
            ])
          for message in have.messages() {
            let inbound = try #require(InboundMessage(decoding: message, account: world.account))
            world.perform(.received(session, inbound), on: 1)
          }
        }
        for message in batch.messages() {
          let inbound = try #require(InboundMessage(decoding: message, account: world.account))
          world.perform(.received(session, inbound), on: 1)
        }
      }
    }
    let author = world.devices[index].keys.id
    return names.map { world.devices[1].replica.stores[$0]?.log.weights[author] ?? 0 }
  }

  @Test func `stores that no program here opened share a small part of the budget`() throws {
    let world = try TestWorld(devices: 2, seed: 310)
    world.connectAll()
    world.settle()
    let kept = try fill(3, of: world, changeSets: 5)
    #expect(kept.reduce(0, +) <= Limits.unopenedAuthorBytes, "\(kept)")
    #expect(kept.reduce(0, +) > Limits.unopenedAuthorBytes - (3 << 20), "\(kept)")
    // Change sets that were not taken do not count as covered, and are reported.
    let last = try #require(StoreIdentifier("fill0of2"))
    #expect(
      world.devices[1].reports.contains(
        .authorOverLimit(store: last, author: world.devices[0].keys.id)))
    let status = world.devices[1].replica.status().stores.first { $0.identifier == last }
    #expect(status?.authorsOverLimit == [world.devices[0].keys.id] && status?.isOverLimit == false)
    #expect(status?.isOpenedHere == false)
    let chain = try world.chain(of: 0)
    #expect(world.devices[1].replica.stores[last]?.log.vector[chain] ?? 0 < 5)
    // A program opens a store, and the device remembers that.
    world.perform(.open(last, .maximum), on: 1)
    #expect(world.devices[1].disk.stores[last]?.isUsedHere == true)
    try world.restart(1)
    #expect(world.devices[1].replica.stores[last]?.isUsedHere == true)
  }

  @Test func `devices that a member certified filled a node each with a budget of its own`() throws
  {
    let world = try TestWorld(devices: 8, seed: 312)
    for index in world.devices.indices where index != 1 {
      world.connect(min(1, index), max(1, index))
    }
    world.settle()
    var kept = 0
    for author in [0, 2, 3, 4, 5] {
      kept += try fill(1, of: world, changeSets: 8, by: author).reduce(0, +)
    }
    #expect(kept <= Limits.authorsBytes, "\(kept)")
    #expect(kept > Limits.authorsBytes - (3 << 20), "\(kept)")
  }

  @Test func `a batch under way takes no more than is kept`() throws {
    let world = try TestWorld(devices: 2, seed: 311)
    world.connectAll()
    world.settle()
    let session = try #require(world.links[[0, 1]]?.ends.first { $0.to == 1 }?.session)
    let value = try EncodedValue(.string(String(repeating: "v", count: 1 << 20)))
    let capacity = Policy.standard.capacity(factor: Limits.authorFactor)
    for number in 1...(capacity / (1 << 20) + 4) {
      let clock = world.devices[0].replica.tick()
      let stamp = Stamp(clock: clock, device: world.devices[0].keys.id)
      let entry = Entry(
        key: "k", stamp: stamp, content: .value(value),
        claim: Claim(clock: clock, device: stamp.device, group: 0))
      let changeSet = try world.seal([entry.plaintext()], by: 0, sequence: UInt64(number))
      var message = WireMessage()
      message.batch.store = TestWorld.store.rawValue
      message.batch.more = true
      message.batch.changeSets = [changeSet.wire]
      let inbound = try #require(
        InboundMessage(decoding: message.encodedBytes(), account: world.account))
      world.perform(.received(session, inbound), on: 1)
    }
    let weight = try #require(world.devices[1].replica.links[session]?.bufferedBytes)
    #expect(weight <= capacity && weight > capacity - (2 << 20))
  }
}

/// How many bytes of one author a store may hold, and an unfinished batch may bring.
@Suite struct AuthorRoomTests {
  private typealias Held = (isUsedHere: Bool, by: ChainID, bytes: Int)
  private let mib = 1 << 20

  /// A store that keeps so many bytes; their boxes take no memory.
  private func store(
    _ number: Int, _ policy: Policy, isUsedHere: Bool, keeping held: [Held] = []
  ) throws -> StoreReplica {
    let identifier = try #require(StoreIdentifier("com.example.Store\(number)"))
    var store = StoreReplica(identifier: identifier, policy: policy)
    store.isUsedHere = isUsedHere
    for each in held {
      let changeSet = unsigned(1, of: each.by, boxes: [])
      store.log.insert(changeSet)
      store.log.restore(
        boxOf: each.bytes - changeSet.weight - Limits.overheadBytes,
        to: EntryLocation(changeSet: changeSet.reference, index: 0))
    }
    return store
  }

  /// The limits are 56 MiB of one author, 16 MiB of it in unopened stores, 64 MiB of all others, with
  /// a floor of 256 KiB. A store of the standard policy has 10 MiB.
  @Test func `the room is what the tightest limit leaves`() throws {
    let (own, author, other) = (chain(1), chain(2), chain(3))
    let cases: [(String, Policy, isUsedHere: Bool, here: [Held], beside: [Held], capacity: Int)] = [
      ("nothing is kept", .maximum, true, [], [], 56 * mib),
      ("the store's policy", .standard, true, [], [], 10 * mib),
      ("unopened", .maximum, false, [], [], 16 * mib),
      ("unopened, and its policy", .standard, false, [], [], 10 * mib),
      ("kept here", .maximum, true, [(true, author, mib), (true, other, 8 * mib)], [], 56 * mib),
      ("the author's beside", .maximum, true, [], [(true, author, 20 * mib)], 36 * mib),
      ("the author's unopened", .maximum, true, [], [(false, author, 3 * mib)], 53 * mib),
      ("beside, unopened", .maximum, false, [], [(true, author, 20 * mib)], 16 * mib),
      ("unopened beside unopened", .maximum, false, [], [(false, author, 3 * mib)], 13 * mib),
      ("others' here", .maximum, true, [(true, other, 10 * mib)], [], 54 * mib),
      ("others' beside", .maximum, true, [], [(false, other, 10 * mib)], 54 * mib),
      ("own", .maximum, true, [(true, own, 60 * mib)], [(true, own, 60 * mib)], 56 * mib),
      ("the floor", .maximum, true, [(true, other, 64 * mib)], [], mib / 4),
      ("half of it", .maximum, true, [(true, other, 64 * mib)], [(true, author, mib / 8)], mib / 8),
    ]
    for (name, policy, isUsedHere, here, beside, capacity) in cases {
      let kept = try store(0, policy, isUsedHere: isUsedHere, keeping: here)
      var stores = [kept.identifier: kept]
      for held in beside {
        let another = try store(1, .standard, isUsedHere: held.isUsedHere, keeping: [held])
        stores[another.identifier] = another
      }
      let budget = AuthorBudget(
        of: author.device, beside: kept.identifier, among: stores, own: own.device)
      #expect(budget.capacity(in: kept) == capacity, "\(name)")
    }
  }

  @Test(
    arguments: [
      (.standard, true, 10), (.standard, false, 10), (.maximum, true, 56), (.maximum, false, 16),
    ] as [(Policy, Bool, Int)])
  func `an unfinished batch has the room of its store, beside those of other sessions`(
    policy: Policy, isUsedHere: Bool, mebibytes: Int
  ) throws {
    var fixture = try LinkFixture()
    var replica = Replica(
      keys: deviceKeys(9), roster: fixture.roster, process: ProcessID(Digest128 { _ in }),
      entropy: SeededEntropy(seed: 1))
    let sets = try [fixture.changeSet(1, bytes: 100), fixture.changeSet(1, bytes: 200)]
    let sessions = [SessionID(rawValue: 0), SessionID(rawValue: 1)]
    for (session, changeSet) in zip(sessions, sets) {
      let part = try fixture.part([changeSet], hasMore: true)
      replica.links[session] = LinkFixture.exchanging()
      _ = replica.links[session]?.receive(part, size: 1, within: fixture.bounds())
    }
    let store = try store(0, policy, isUsedHere: isUsedHere)
    let bounds = (sessions + [nil]).map { replica.batchBounds(in: store, on: $0) }
    #expect(bounds.allSatisfy { $0.authorBytes == mebibytes * mib })
    let weights = sets.map(\.weight)
    #expect(bounds.map(\.elsewhereBytes) == [weights[1], weights[0], weights[0] + weights[1]])
  }
}
