import KithCrypto
import Testing

@testable import KithCore

/// How a batch is put together of its parts.
@Suite struct LinkBatchTests {
  typealias OnPart = BatchAssembly.OnPart

  private func whole(_ outcome: OnPart) throws -> (Batch, Taint) {
    guard case .whole(let batch, let taint) = outcome else { throw BrokenFixture() }
    return (batch, taint)
  }

  private func isMore(_ outcome: OnPart) -> Bool { if case .more = outcome { true } else { false } }
  private func isViolation(_ outcome: OnPart) -> Bool {
    if case .violation = outcome { true } else { false }
  }
  private func isUnwanted(_ outcome: OnPart) -> Bool {
    if case .unwanted = outcome { true } else { false }
  }

  // MARK: Parts

  @Test func `parts become one batch`() throws {
    var fixture = try LinkFixture()
    var assembly = BatchAssembly()
    let sets = [try fixture.changeSet(1), try fixture.changeSet(2)]
    let first = assembly.add(
      try fixture.part([sets[0]], answers: 3, hasMore: true), size: 1, within: fixture.bounds())
    #expect(isMore(first))
    #expect(assembly.weights.total == sets[0].weight)
    let (batch, taint) = try whole(
      assembly.add(try fixture.part([sets[1]], answers: 3), size: 1, within: fixture.bounds()))
    #expect(batch.changeSets == sets && batch.answers == 3)
    #expect(!taint.isOfAllChains && taint.chains.isEmpty && !taint.isUnjudged)
    #expect(assembly.weights.total == 0)
  }

  @Test func `another store's part, and more than a batch may be, break the protocol`() throws {
    let fixture = try LinkFixture()
    var assembly = BatchAssembly()
    _ = assembly.add(try fixture.part(hasMore: true), size: 1, within: fixture.bounds())
    var other = assembly
    let ofAnother = other.add(
      try fixture.part(of: LinkFixture.other), size: 1, within: fixture.bounds())
    let tooLarge = assembly.add(
      try fixture.part(), size: Limits.batchBytes, within: fixture.bounds())
    #expect(isViolation(ofAnother) && isViolation(tooLarge))
  }

  @Test func `a batch without one of its parts counts for nothing`() throws {
    var fixture = try LinkFixture()
    let set = try fixture.changeSet(1)
    var assembly = BatchAssembly()
    _ = assembly.add(try fixture.part([set], hasMore: true), size: 1, within: nil)
    let (batch, taint) = try whole(
      assembly.add(try fixture.part([set]), size: 1, within: fixture.bounds()))
    #expect(batch.changeSets == [set])
    #expect(taint.contains(fixture.chain()))
    let unwanted = assembly.add(try fixture.part([set]), size: 1, within: nil)
    #expect(isUnwanted(unwanted))
  }

  @Test func `an author's waiting change sets are bounded, and an unknown author's are not kept`()
    throws
  {
    let stranger = deviceKeys(5)
    var fixture = try LinkFixture()
    let known = try fixture.changeSet(1)
    let unknown = try fixture.changeSet(1, by: stranger)
    func taint(_ set: ChangeSet, _ bounds: BatchBounds) throws -> (kept: Int, taint: Taint) {
      var assembly = BatchAssembly()
      let (batch, taint) = try whole(
        assembly.add(try fixture.part([set]), size: 1, within: bounds))
      return (batch.changeSets.count, taint)
    }
    let (kept, unjudged) = try taint(unknown, fixture.bounds())
    #expect(kept == 0 && unjudged.isUnjudged && unjudged.contains(fixture.chain(of: stranger)))
    for bounds in [
      fixture.bounds(authorBytes: known.weight - 1),
      fixture.bounds(elsewhere: Limits.authorsBytes - known.weight + 1),
    ] {
      let (kept, tooMuch) = try taint(known, bounds)
      #expect(kept == 0 && tooMuch.overLimit == [fixture.fixture.creator.id])
      #expect(tooMuch.contains(fixture.chain()) && !tooMuch.isUnjudged)
    }
    let fits = fixture.bounds(
      authorBytes: known.weight, elsewhere: Limits.authorsBytes - known.weight)
    #expect(try taint(known, fits).kept == 1)
  }

  /// A restored device gets back all that others kept of it. A peer can repeat one without end.
  @Test func `of its own change sets a device takes as many bytes as others may keep`() throws {
    var fixture = try LinkFixture()
    let own = try fixture.changeSet(1, bytes: 1 << 20)
    let bounds = BatchBounds(
      own: fixture.fixture.creator.id, roster: fixture.roster, authorBytes: 0, elsewhereBytes: 0)
    var assembly = BatchAssembly()
    for _ in 0..<60 {
      let part = try fixture.part([own], hasMore: true)
      let next = assembly.add(part, size: 1 << 20, within: bounds)
      #expect(isMore(next))
    }
    #expect(assembly.weights.total > Limits.authorBytes - 2 << 20)
    let (batch, taint) = try whole(assembly.add(try fixture.part(), size: 1, within: bounds))
    #expect(batch.changeSets.reduce(0) { $0 + $1.weight } <= Limits.authorBytes)
    #expect(taint.contains(fixture.chain()) && taint.overLimit.isEmpty)
  }

  @Test func `the chains of one batch that may not be counted are bounded`() throws {
    let fixture = try LinkFixture()
    var assembly = BatchAssembly()
    var part = try fixture.part()
    part.changeSets = (0...UInt64(Limits.taintedChains)).map {
      .unsound(ChainID(device: deviceKeys(5).id, incarnation: Incarnation(rawValue: $0)))
    }
    let (_, taint) = try whole(assembly.add(part, size: 1, within: fixture.bounds()))
    #expect(taint.isOfAllChains && taint.chains.isEmpty)
  }

  @Test func `of a revoked author nothing is kept`() throws {
    let gone = deviceKeys(5)
    var fixture = try LinkFixture(joined: [gone])
    var roster = fixture.roster
    let revocation = try fixture.fixture.revocation(of: gone.id, by: fixture.fixture.creator)
    _ = roster.learn(all: [revocation])
    let bounds = BatchBounds(
      own: deviceKeys(9).id, roster: roster, authorBytes: 1 << 20, elsewhereBytes: 0)
    var assembly = BatchAssembly()
    let set = try fixture.changeSet(1, by: gone)
    let (batch, taint) = try whole(assembly.add(try fixture.part([set]), size: 1, within: bounds))
    #expect(batch.changeSets.isEmpty && taint.chains.isEmpty)
  }

  @Test func `entries stay opened in as many bytes as an honest batch has, on all sessions`() throws
  {
    var fixture = try LinkFixture()
    var part = try fixture.part([try fixture.changeSet(1)])
    var opener = fixture.opener
    part.changeSets = opener.open(part.changeSets, concurrently: nil)
    for (size, elsewhere, isOpened) in [
      (Limits.pieceBytes, 0, true), (Limits.pieceBytes + 1, 0, false),
      (1, Limits.pieceBytes, false),
    ] {
      var assembly = BatchAssembly()
      let bounds = fixture.bounds(elsewhere: elsewhere)
      let (batch, _) = try whole(assembly.add(part, size: size, within: bounds))
      #expect(batch.changeSets.map { $0.opened != nil } == [isOpened], "\(size) \(elsewhere)")
    }
  }

  // MARK: Answers

  @Test(
    arguments: [
      ([("answer", false)], true, false), ([("answer", true)], true, true),
      ([("push", true)], false, false), ([("piece", true)], false, false),
      ([("piece", true), ("answer", false)], true, true),
      ([("piece", true), ("piece", false), ("answer", false)], true, true),
      ([("piece", true), ("answer", false), ("answer", false)], true, false),
      ([("answer", false), ("push", true), ("answer", false)], true, false),
    ] as [([(String, Bool)], Bool, Bool)])
  func `only an answer answers, for the pieces before it, too`(
    applied: [(kind: String, isUnjudged: Bool)], isPulled: Bool, isUnjudged: Bool
  ) {
    var exchange = StoreExchange()
    for (kind, isUnjudged) in applied {
      var batch = Batch(store: LinkFixture.store, answers: kind == "push" ? 0 : 1)
      batch.isUnfinished = kind == "piece"
      var taint = exchange.unfinished?.taint ?? Taint()
      taint.isUnjudged = taint.isUnjudged || isUnjudged
      exchange.noteApplied(batch, taint, isNews: false)
    }
    #expect(exchange.isPulled == isPulled)
    #expect(exchange.isUnjudged == isUnjudged)
    #expect(exchange.isAwaited == (!isPulled || isUnjudged))
  }

  @Test func `the chains of endless pieces that may not be counted are bounded`() {
    let device = deviceKeys(1).id
    var taint = Taint()
    for number in 0..<3 {
      var piece = Taint()
      piece.add(
        Set(
          (0..<UInt64(Limits.taintedChains)).map {
            ChainID(device: device, incarnation: Incarnation(rawValue: $0 << 2 | UInt64(number)))
          }))
      piece.follow(taint)
      #expect(piece.chains.count <= Limits.taintedChains)
      #expect(piece.isOfAllChains == (number > 0))
      taint = piece
    }
  }
}
