import KithCrypto
import Testing

@testable import KithCore

/// The data that a peer is sent, and the data that waits because its session takes no more.
@Suite struct LinkSendingTests {
  private func isNil(_ due: Link.Due?) -> Bool { if case nil = due { true } else { false } }

  private func sequences(_ piece: Link.Piece?) -> [UInt64]? {
    piece?.batch.changeSets.map(\.sequence)
  }

  private func piece(_ outcome: Link.OnAsk) throws -> Link.Piece {
    guard case .piece(let piece) = outcome else { throw BrokenFixture() }
    return piece
  }

  private func answer(
    _ theirs: StoreHave, on link: inout Link, from log: ChangeSetLog, digest: Digest256? = nil,
    pieceBytes: Int = 1 << 20
  ) -> Link.OnAsk {
    link.answer(theirs, number: 1, from: log, digest: digest, pieceBytes: pieceBytes)
  }

  // MARK: Flow

  @Test(
    arguments: [
      ([10], false, [false], true), ([Limits.bytesUnderWay], false, [true], false),
      ([Limits.bytesUnderWay - 1, 1, 1], false, [false, true, false], false),
      ([10], true, [true], false),
    ] as [([Int], Bool, [Bool], Bool)])
  func `after many bytes, or a piece, the network is asked for room`(
    sent: [Int], isUnfinished: Bool, asks: [Bool], canSend: Bool
  ) {
    var flow = Flow()
    let asked = sent.map { flow.sent($0, isUnfinished: isUnfinished) }
    #expect(asked == asks)
    #expect(flow.canSend == canSend)
    flow.noteDrained()
    #expect(flow.canSend)
    flow.set(isWritable: false)
    flow.noteDrained()
    #expect(!flow.canSend)
  }

  @Test(arguments: [true, false]) func `a large batch is read from storage`(isLarge: Bool) {
    let changeSet = unsigned(1, of: chain(1), boxes: [isLarge ? Limits.readyBatchBytes : 10])
    var log = ChangeSetLog()
    log.insert(changeSet)
    let cover = Cover(chain: chain(1), from: 0, through: 1)
    let batch = Batch(store: LinkFixture.store, changeSets: [changeSet], covers: [cover])
    let outbound = OutboundBatch(batch, from: log)
    #expect((outbound.byteCount > Limits.readyBatchBytes) == isLarge)
    guard case .stored(let stored) = outbound else {
      #expect(!isLarge && outbound.effects(on: SessionID(rawValue: 1), isEarly: false).count == 1)
      return
    }
    #expect(isLarge && stored.changeSets.map(\.sequence) == [1] && stored.covers == [cover])
  }

  // MARK: Answers

  @Test func `a first answer is sent even if empty, another if it is awaited`() throws {
    let log = ChangeSetLog()
    var link = LinkFixture.exchanging()
    #expect(!link[LinkFixture.store].isAnswered)
    let first = try piece(answer(LinkFixture.have(), on: &link, from: log))
    #expect(first.batch.answers == 1 && first.batch.isEmpty)
    #expect(link[LinkFixture.store].isAnswered)
    guard case .nothing = answer(LinkFixture.have(), on: &link, from: log) else {
      throw BrokenFixture()
    }
    let awaited = LinkFixture.have(isAwaited: true)
    let again = try piece(answer(awaited, on: &link, from: log))
    #expect(again.batch.isEmpty)
  }

  @Test func `of equal states nothing is sent, though change sets are kept above the vector`()
    throws
  {
    var fixture = try LinkFixture()
    var log = ChangeSetLog()
    for sequence in 2...3 as ClosedRange<UInt64> { log.insert(try fixture.changeSet(sequence)) }
    let digest = Blake2b.digest256([1])
    var link = LinkFixture.exchanging()
    var have = LinkFixture.have()
    have.digest = digest
    let first = try piece(answer(have, on: &link, from: log, digest: digest))
    #expect(first.batch.answers == 1 && first.batch.isEmpty)
    guard case .nothing = answer(have, on: &link, from: log, digest: digest) else {
      throw BrokenFixture()
    }
    have.digest = Blake2b.digest256([2])
    guard case .everything(let everything, _) = answer(have, on: &link, from: log, digest: digest)
    else { throw BrokenFixture() }
    #expect(sequences(everything) == [2, 3])
  }

  @Test func `an answer goes piece by piece, and a have between two does not begin it again`()
    throws
  {
    var fixture = try LinkFixture()
    let log = try fixture.log(3, bytes: 1_000)
    var link = LinkFixture.exchanging()
    let first = try piece(
      answer(LinkFixture.have(), on: &link, from: log, pieceBytes: 1_500))
    #expect(sequences(first) == [1] && first.asksForDrain && first.batch.isUnfinished)
    let due = link.nextDue()
    #expect(isNil(due))
    guard
      case .waits = link.answer(
        LinkFixture.have(), number: 7, from: log, digest: nil, pieceBytes: 1_500)
    else { throw BrokenFixture() }
    link.flow.noteDrained()
    guard case .piece(let rest)? = link.nextDue() else { throw BrokenFixture() }
    let last = link.piece(of: rest, from: log, bytes: 1 << 20, evenEmpty: true)
    #expect(sequences(last) == [2, 3] && last?.batch.answers == 7)
    if case .some = link[LinkFixture.store].pending { Issue.record("something is pending") }
  }

  @Test func `equal vectors with other digests bring everything, and are news once`() throws {
    var fixture = try LinkFixture()
    let log = try fixture.log(2)
    let (ours, theirs) = (Blake2b.digest256([1]), Blake2b.digest256([2]))
    var link = LinkFixture.exchanging()
    for isFirst in [true, false] {
      guard
        case .everything(let piece, let isNews) = answer(
          LinkFixture.have(log.vector, digest: theirs), on: &link, from: log, digest: ours)
      else { throw BrokenFixture() }
      #expect(isNews == isFirst)
      #expect(sequences(piece) == [1, 2] && piece?.batch.isEverything == true)
    }
    guard
      case .nothing = answer(
        LinkFixture.have(log.vector, digest: ours), on: &link, from: log, digest: ours)
    else { throw BrokenFixture() }
  }

  // MARK: Pushes

  @Test func `a push goes to a peer that was answered and lacks it`() throws {
    var fixture = try LinkFixture()
    let set = try fixture.changeSet(1)
    let batch = Batch(
      store: LinkFixture.store, changeSets: [set],
      covers: [Cover(chain: fixture.chain(), from: 0, through: 1)])
    func push(_ link: inout Link, isInPieces: Bool = false) -> Link.OnPush {
      link.push(batch, isInPieces: isInPieces)
    }
    var link = LinkFixture.exchanging()
    var outcomes = [push(&link)]
    link[LinkFixture.store].isAnswered = true
    outcomes.append(push(&link))
    var mismatched = link
    mismatched[LinkFixture.store].isMismatched = true
    outcomes.append(push(&mismatched))
    var has = link
    has.note([fixture.chain(): 1], of: LinkFixture.store, isWhole: true) { _ in true }
    outcomes.append(push(&has))
    #expect(outcomes == [.nothing, .send, .nothing, .nothing])
    var full = link
    full.flow.set(isWritable: false)
    outcomes = [push(&full), push(&link, isInPieces: true)]
    #expect(outcomes == [.queued, .queued])
    let due = full.nextDue()
    #expect(isNil(due), "it takes no more")
    full.flow.set(isWritable: true)
    guard case .piece(let answer)? = full.nextDue(), case .piece? = link.nextDue() else {
      throw BrokenFixture()
    }
    #expect(answer.number == 0 && answer.vector.isEmpty)
  }

  @Test func `answers go before pushes, in order of stores`() throws {
    var link = LinkFixture.exchanging()
    let log = ChangeSetLog()
    for store in [LinkFixture.store, LinkFixture.other] { link[store].isAnswered = true }
    link.flow.set(isWritable: false)
    _ = link.push(Batch(store: LinkFixture.store), isInPieces: false)
    var asked = LinkFixture.have()
    asked.store = LinkFixture.other
    _ = answer(asked, on: &link, from: log)
    link.flow.set(isWritable: true)
    guard case .answer(let first, _)? = link.nextDue(), case .piece(let second)? = link.nextDue()
    else { throw BrokenFixture() }
    #expect(first.store == LinkFixture.other && second.store == LinkFixture.store)
    let third = link.nextDue()
    #expect(isNil(third))
  }

  @Test func `after a carry-over the rest of an answer began above what had no covers`() throws {
    var fixture = try LinkFixture()
    let log = try fixture.log(3, bytes: 1_000)
    var link = LinkFixture.exchanging()
    var isQueued = [link.queueAgain(LinkFixture.store)]
    _ = try piece(answer(LinkFixture.have(), on: &link, from: log, pieceBytes: 1_500))
    isQueued.append(link.queueAgain(LinkFixture.store))
    #expect(isQueued == [false, true])
    link.flow.noteDrained()
    guard case .piece(let rest)? = link.nextDue() else { throw BrokenFixture() }
    let all = link.piece(of: rest, from: log, bytes: 1 << 20, evenEmpty: true)
    #expect(sequences(all) == [1, 2, 3] && all?.batch.answers == 1)
    #expect(all?.batch.covers == [Cover(chain: fixture.chain(), from: 0, through: 3)])
    // Without an answer under way it is owed like a push.
    _ = link.queueAgain(LinkFixture.store)
    link.flow.noteDrained()
    guard case .piece(let pending)? = link.nextDue() else { throw BrokenFixture() }
    #expect(pending.number == 0)
  }

  // MARK: Limits of stores

  @Test func `limits that differ are news once, and ask again when they agree`() {
    var link = LinkFixture.exchanging()
    var theirs = LinkFixture.have()
    var outcomes = [link.compare(theirs, with: .standard)]
    theirs.policy.keys += 1
    outcomes += (0..<2).map { _ in link.compare(theirs, with: .standard) }
    #expect(link[LinkFixture.store].isMismatched)
    theirs.policy = .standard
    outcomes += (0..<2).map { _ in link.compare(theirs, with: .standard) }
    let texts = outcomes.map { "\($0)" }
    #expect(
      texts == ["same", "differs(isNews: true)", "differs(isNews: false)", "sameAgain", "same"])
  }
}
