import KithCrypto
import Testing

@testable import KithCore

/// How many bytes of one author a store may hold, and an unfinished batch may bring.
@Suite struct AuthorRoomTests {
  private typealias Held = (isOpened: Bool, by: ChainID, bytes: Int)
  private let mib = 1 << 20

  /// A store that keeps so many bytes; their boxes take no memory.
  private func store(
    _ number: Int, _ policy: Policy, isOpened: Bool, keeping held: [Held] = []
  ) throws -> StoreReplica {
    let identifier = try #require(StoreIdentifier("com.example.Store\(number)"))
    var store = StoreReplica(identifier: identifier, policy: policy)
    store.isOpened = isOpened
    for each in held {
      let changeSet = unsigned(1, of: each.by, boxes: [])
      store.log.insert(changeSet)
      store.log.restore(
        boxOf: each.bytes - changeSet.weight - Limits.overheadBytes,
        to: EntryHome(changeSet: changeSet.reference, index: 0))
    }
    return store
  }

  /// The limits are 56 MiB of one author, 16 MiB of it in unopened stores, 64 MiB of all others, with
  /// a floor of 256 KiB. A store of the standard policy has 10 MiB.
  @Test func `the room is what the tightest limit leaves`() throws {
    let (own, author, other) = (chain(1), chain(2), chain(3))
    let cases: [(String, Policy, isOpened: Bool, here: [Held], beside: [Held], room: Int)] = [
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
    for (name, policy, isOpened, here, beside, room) in cases {
      let kept = try store(0, policy, isOpened: isOpened, keeping: here)
      var stores = [kept.identifier: kept]
      for held in beside {
        let another = try store(1, .standard, isOpened: held.isOpened, keeping: [held])
        stores[another.identifier] = another
      }
      let budget = AuthorBudget(
        of: author.device, beside: kept.identifier, among: stores, own: own.device)
      #expect(budget.room(in: kept) == room, "\(name)")
    }
  }

  @Test(
    arguments: [
      (.standard, true, 10), (.standard, false, 10), (.maximum, true, 56), (.maximum, false, 16),
    ] as [(Policy, Bool, Int)])
  func `an unfinished batch has the room of its store, beside those of other sessions`(
    policy: Policy, isOpened: Bool, mebibytes: Int
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
      _ = replica.links[session]?.receive(part, size: 1, keeping: fixture.room())
    }
    let store = try store(0, policy, isOpened: isOpened)
    let rooms = (sessions + [nil]).map { replica.roomForBatch(in: store, on: $0) }
    #expect(rooms.allSatisfy { $0.authorBytes == mebibytes * mib })
    let weights = sets.map(\.weight)
    #expect(rooms.map(\.elsewhereBytes) == [weights[1], weights[0], weights[0] + weights[1]])
  }
}
