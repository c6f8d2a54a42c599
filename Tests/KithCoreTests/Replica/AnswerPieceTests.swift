import KithCrypto
import Testing

@testable import KithCore

/// A large answer travels in pieces: each is applied alone, the last one counts for all, and the
/// next is made once there is room (`Docs/Protocol/sessions.md`, "An answer in pieces").
@Suite struct AnswerPieceTests {
  // MARK: The cut of an answer

  struct Cut: CustomTestStringConvertible, Sendable {
    var name: String
    /// Of each kept change set its author, its sequence and about how many KiB it weighs.
    var kept: [(author: Int, sequence: UInt64, weight: Int)]
    /// How far the chains are covered, if less than what is kept.
    var covered: [Int: UInt64] = [:]
    /// Of each piece its sequences, by author.
    var pieces: [[String]]
    /// The covers of the last one, by author.
    var covers: [String]

    var testDescription: String { name }
  }

  static let cuts: [Cut] = [
    Cut(name: "nothing", kept: [], pieces: [[]], covers: []),
    Cut(
      name: "all fits", kept: [(0, 1, 3), (0, 4, 3), (1, 2, 3)],
      pieces: [["0:1", "0:4", "1:2"]], covers: ["0:0-4", "1:0-2"]),
    Cut(
      name: "in the middle of a chain", kept: [(0, 2, 6), (0, 5, 6), (0, 9, 3)],
      pieces: [["0:2"], ["0:5", "0:9"]], covers: ["0:0-9"]),
    Cut(
      name: "between two chains", kept: [(0, 1, 6), (1, 1, 6), (1, 2, 3)],
      pieces: [["0:1"], ["1:1", "1:2"]], covers: ["0:0-1", "1:0-2"]),
    Cut(
      name: "one that is larger than a piece", kept: [(0, 1, 3), (0, 2, 40), (1, 1, 3)],
      pieces: [["0:1"], ["0:2"], ["1:1"]], covers: ["0:0-2", "1:0-1"]),
    Cut(
      name: "a fork at the cut", kept: [(0, 1, 6), (0, 2, 6), (0, 2, 6), (0, 3, 3)],
      pieces: [["0:1"], ["0:2"], ["0:2", "0:3"]], covers: ["0:0-3"]),
    Cut(
      name: "more than is covered", kept: [(0, 1, 6), (0, 2, 6), (0, 3, 6)], covered: [0: 1],
      pieces: [["0:1"], ["0:2"], ["0:3"]], covers: ["0:0-1"]),
  ]

  @Test(arguments: cuts) func `an answer is cut between change sets`(_ cut: Cut) throws {
    let world = try TestWorld(devices: 2, seed: 400)
    let authors = [0, 1].sorted { world.devices[$0].keys.id < world.devices[$1].keys.id }
    var log = ChangeSetLog()
    for set in cut.kept {
      let entry = try world.entry("k", blob(set.weight << 10), on: authors[set.author])
      log.insert(
        try world.seal([entry.plaintext()], by: authors[set.author], sequence: set.sequence))
      let most = cut.covered[set.author] ?? set.sequence
      _ = log.cover(try world.chain(of: authors[set.author]), through: min(most, set.sequence))
    }
    func name(_ device: DeviceID) -> Int { device == world.devices[authors[0]].keys.id ? 0 : 1 }
    var answer = Answer(store: TestWorld.store, number: 7, above: [:])
    for (place, piece) in cut.pieces.enumerated() {
      let batch = answer.nextPiece(of: log, bytes: 12 << 10)
      let isLast = place == cut.pieces.count - 1
      #expect(batch.isUnfinished == !isLast)
      #expect(batch.answers == 7)
      #expect(batch.changeSets.map { "\(name($0.chain.device)):\($0.sequence)" } == piece)
      let covers = batch.covers.map { "\(name($0.chain.device)):\($0.from)-\($0.through)" }
      #expect(covers == (isLast ? cut.covers : []))
    }
  }

  @Test func `a write between two pieces comes with the next`() throws {
    let world = try TestWorld(devices: 1, seed: 410)
    let chain = try world.chain(of: 0)
    var log = ChangeSetLog()
    func add(_ sequence: UInt64) throws {
      let entry = try world.entry("k\(sequence)", blob(6 << 10), on: 0)
      log.insert(try world.seal([entry.plaintext()], by: 0, sequence: sequence))
    }
    // The second is not there yet, so the third is not covered.
    for sequence: UInt64 in [1, 3] { try add(sequence) }
    _ = log.cover(chain, through: 1)
    var answer = Answer(store: TestWorld.store, number: 7, above: [:])
    let first = answer.nextPiece(of: log, bytes: 7 << 10)
    #expect(first.changeSets.map(\.sequence) == [1] && first.covers.isEmpty)
    for sequence: UInt64 in [2, 4] { try add(sequence) }
    _ = log.cover(chain, through: 4)
    let second = answer.nextPiece(of: log, bytes: 14 << 10)
    #expect(second.changeSets.map(\.sequence) == [2, 3] && second.covers.isEmpty)
    let last = answer.nextPiece(of: log, bytes: 14 << 10)
    #expect(last.changeSets.map(\.sequence) == [4])
    #expect(last.covers == [Cover(chain: chain, from: 0, through: 4)])
  }

  // MARK: Between devices

  /// Two devices that have met, with pieces of 2 KiB.
  private func world(_ count: Int = 2, seed: UInt64) throws -> TestWorld {
    let world = try TestWorld(devices: count, seed: seed)
    world.connectAll()
    world.settle()
    for device in world.devices { device.replica.pieceBytes = 2 << 10 }
    return world
  }

  /// Has a device with a peer publish so many values of a KiB, each as a change set of its own.
  private func fill(_ world: TestWorld, _ count: Int = 10, by index: Int = 0) {
    for number in 0..<count { world.write([set("\(index)-\(number)", blob(1_024))], on: index) }
    world.settle()
  }

  /// Three devices, of which the first two hold ten values more; the third is away.
  private func worldWithOneAway(seed: UInt64) throws -> TestWorld {
    let world = try world(3, seed: seed)
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    fill(world)
    world.disconnect(0, 1)
    return world
  }

  private func batches(_ bodies: [InboundMessage.Body]) -> [BatchPart] {
    bodies.compactMap { if case .batch(let part) = $0 { part } else { nil } }
  }

  @Test func `an answer comes in pieces, and the last one counts for all`() throws {
    let world = try world(3, seed: 401)
    world.disconnect(0, 2)
    world.disconnect(1, 2)
    fill(world, by: 1)
    fill(world, by: 0)
    var pieces: [BatchPart] = []
    world.tamper = { from, to, message in
      if from == 0, to == 2,
        case .batch(let part)? = InboundMessage(decoding: message, account: world.account)?.body
      {
        pieces.append(part)
      }
      return message
    }
    world.connect(0, 2)
    world.settle()
    #expect(pieces.count == 20)
    #expect(pieces.dropLast().allSatisfy { $0.isUnfinished && $0.covers.isEmpty })
    #expect(pieces.last?.isUnfinished == false && pieces.last?.covers.isEmpty == false)
    #expect(pieces.allSatisfy { $0.answers > 0 && $0.answers == pieces[0].answers })
    world.disconnectAll()
    world.connectAll()
    world.settle()
    world.checkInvariants("in pieces")
    world.checkConvergence("in pieces")
    try world.checkDisks("in pieces")
    for device in world.devices { #expect(device.replica.counters.divergences == 0) }
  }

  @Test func `a large answer was all under way at once`() throws {
    let policy = Policy(totalBytes: 16 << 20, keys: 100, valueBytes: 1 << 20)
    let world = try TestWorld(devices: 2, seed: 402, policy: policy)
    world.connectAll()
    world.settle()
    world.disconnectAll()
    for round in 0..<2 {
      for number in 0..<12 { world.write([set("\(round)-\(number)", blob(500_000))], on: round) }
    }
    for number in 0..<16 { world.write([set("more-\(number)", blob(500_000))], on: 0) }
    world.connectAll()
    world.settle()
    let most = try #require(world.links[[0, 1]]?.ends.map(\.mostBytes).max())
    #expect(most > Limits.pieceBytes / 2 && most < Limits.pieceBytes + (1 << 20))
    world.checkConvergence("large")
    #expect(world.view(1).count == 33, "16 MiB hold so many")
  }

  @Test func `pieces that came before the connection broke are shown, not covered, and come again`()
    throws
  {
    let world = try worldWithOneAway(seed: 403)
    let chain = try world.chain(of: 0)
    world.connect(0, 2)
    while world.view(2).count < 4, world.deliverOne() {}
    world.disconnect(0, 2)
    #expect(world.view(2).count == 4)
    #expect(try world.covered(of: 0, on: 2) == 0)
    var sent: [UInt64] = []
    world.tamper = { from, _, message in
      if from == 0,
        case .batch(let part)? = InboundMessage(decoding: message, account: world.account)?.body
      {
        for case .sound(let set) in part.changeSets where set.header.chain == chain {
          sent.append(set.header.sequence)
        }
      }
      return message
    }
    try world.restart(2)
    world.connect(0, 2)
    world.settle()
    #expect(sent == Array(1...10))
    world.checkConvergence("after a break")
    for device in world.devices { #expect(device.replica.counters.divergences == 0) }
  }

  @Test func `a peer that asks again while pieces come gets the next ones`() throws {
    let world = try worldWithOneAway(seed: 404)
    world.connect(0, 2)
    while world.view(2).count < 3, world.deliverOne() {}
    let session = try #require(world.links[[0, 2]]?.ends[0].session)
    let policy = try #require(world.devices[0].replica.usage(of: TestWorld.store)?.policy)
    var sent = 0
    world.tamper = { from, _, message in
      if from == 0,
        case .batch(let part)? = InboundMessage(decoding: message, account: world.account)?.body
      {
        sent += part.changeSets.count
      }
      return message
    }
    // It says that it has nothing, as if what is under way had not come.
    let have = Have(
      number: 9, isWhole: true, listsAll: false,
      stores: [
        StoreHave(
          store: TestWorld.store, vector: [:], digest: nil, policy: policy)
      ])
    for _ in 0..<20 {
      let message = try #require(have.messages().first)
      let inbound = try #require(InboundMessage(decoding: message, account: world.account))
      world.perform(.received(session, inbound), on: 0)
    }
    world.settle()
    #expect((1...10).contains(sent), "what is under way is not sent again")
    world.checkConvergence("asked again")
  }

  @Test func `a slow peer is sent its backlog in pieces, and so is a large batch that is relayed`()
    throws
  {
    let world = try world(4, seed: 405)
    for (one, other) in [(0, 2), (0, 3), (1, 3), (2, 3)] { world.disconnect(one, other) }
    let session = try #require(world.links[[1, 2]]?.ends[0].session)
    world.perform(.writable(session, false), on: 1)
    fill(world)
    #expect(world.view(1).count == 10 && world.view(2).isEmpty)
    world.links[[1, 2]]?.ends[0].mostBytes = 0
    world.perform(.writable(session, true), on: 1)
    world.settle()
    let most = try #require(world.links[[1, 2]]?.ends[0].mostBytes)
    #expect(most > 0 && most < 3_000)
    #expect(world.view(2).count == 10)
    // One batch of more than a piece.
    world.disconnect(0, 1)
    world.connect(0, 3)
    world.settle()
    fill(world, 20)
    world.devices[0].replica.pieceBytes = 1 << 20
    world.links[[1, 2]]?.ends[0].mostBytes = 0
    world.connect(0, 1)
    world.settle()
    let relayed = try #require(world.links[[1, 2]]?.ends[0].mostBytes)
    #expect(relayed > 0 && relayed < 3_000)
    #expect(world.view(2).count == 20)
    world.checkConvergence("relayed")
  }

  @Test func `everything comes in pieces, to the end`() throws {
    let world = try world(seed: 406)
    fill(world)
    world.disconnectAll()
    // An entry vanishes from a disk: equal vectors, other digests.
    let kept = try #require(world.devices[1].disk.stores[TestWorld.store]?.changeSets.keys)
    let lost = try #require(kept.max { $0.sequence < $1.sequence })
    world.devices[1].disk.apply(.remove(.store(TestWorld.store, .entry(lost, 0))))
    try world.restart(1)
    #expect(world.digest(0) != world.digest(1))
    world.connectAll()
    world.settle()
    world.checkConvergence("everything")
    #expect(world.devices[0].replica.counters.divergences <= 1)
    #expect(world.devices[1].replica.counters.divergences <= 1)
  }

  @Test func `a piece that cannot be judged yet keeps its answer from counting`() throws {
    let world = try TestWorld(devices: 2, seed: 407)
    world.connectAll()
    let unjudged = try world.seal(
      [try world.entry("k", on: 0, by: 1).plaintext()], by: 0, sequence: 1)
    var first = Batch(store: TestWorld.store, answers: 1, changeSets: [unjudged])
    first.isUnfinished = true
    try world.hand(first, from: 0, to: 1)
    let last = Batch(
      store: TestWorld.store, answers: 1,
      covers: [Cover(chain: try world.chain(of: 0), from: 0, through: 1)])
    try world.hand(last, from: 0, to: 1)
    #expect(try world.covered(of: 0, on: 1) == 0)
    let link = try #require(world.devices[1].replica.links.values.first)
    #expect(link[TestWorld.store].isUnjudged)
    #expect(link[TestWorld.store].isAwaited)
    try world.hand(last, from: 0, to: 1)
    #expect(world.devices[1].replica.links.values.first?[TestWorld.store].isAwaited == false)
  }
}
