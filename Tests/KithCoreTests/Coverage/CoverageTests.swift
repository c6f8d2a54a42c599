import KithCrypto
import Testing

@testable import KithCore

/// The rule for words, who is left behind, and how statements spread, without a replica.
@Suite struct CoverageTests {
  private let store: StoreIdentifier
  private let account = AccountID(Extent.digest(of: [:]))
  private let keys = (0..<12 as Range<UInt64>).map { deviceKeys(40 + $0) }
  private let chain: ChainID

  init() throws {
    store = try #require(StoreIdentifier("com.example.Tests"))
    chain = ChainID(device: keys[0].id, incarnation: Incarnation(rawValue: 1))
  }

  private func time(_ number: Int) -> HybridTime { HybridTime(milliseconds: UInt64(number)) }

  private func coverage(of index: Int, among count: Int) -> Coverage {
    var coverage = Coverage(device: keys[index].id)
    coverage.setMembers(keys.prefix(count).map(\.id))
    return coverage
  }

  /// An event of one chain that device 0 hears of device 1.
  private enum Event {
    /// A session begins.
    case begin
    case end
    /// The peer tells its vector.
    case tells(Int, started: Int, isWhole: Bool)
    /// A statement comes: it names a sequence, or says that the vector is device 0's own.
    case says(Int?, started: Int, number: UInt32)
    case isNoMember
  }

  private func extent(_ sequence: Int?) -> Extent {
    sequence.map {
      Extent(store, digest: Extent.digest(of: [:]), entries: [chain: UInt64($0)])
    } ?? Extent(store, digest: Extent.digest(of: [chain: 9]), entries: [:])
  }

  private func statement(
    _ sequence: Int?, by index: Int, started: Int, number: UInt32
  ) -> Statement {
    Statement(
      extent(sequence), age: StatementAge(started: time(started), number: number),
      account: account, keys: keys[index])
  }

  private func hear(
    _ statements: [Statement], _ coverage: inout Coverage,
    at now: Instant = Instant(wallMilliseconds: 0, monotonicMilliseconds: 0),
    isRefuted: (HybridTime) -> Bool = { _ in false }
  ) -> Coverage.Heard {
    coverage.hear(
      StatementGroup.groups(of: statements), in: account, at: now,
      isTooFarAhead: { $0 > time(1_000) }, isRefuted: isRefuted, isKnown: { $0 == store },
      received: { $1 == chain ? 9 : 0 }, with: nil)
  }

  /// Device 0 covers the chain through 9, and received no header above.
  @Test func `the rule, event by event`() {
    let session = SessionID(rawValue: 1)
    let cases: [(String, [Event], UInt64?)] = [
      ("nothing is known", [], nil),
      ("a peer tells", [.begin, .tells(3, started: 5, isWhole: true)], 3),
      (
        "a peer tells more",
        [
          .begin, .tells(3, started: 5, isWhole: true),
          .tells(4, started: 5, isWhole: false),
        ], 4
      ),
      (
        "late words of one process do not lower what is known",
        [
          .begin, .tells(4, started: 5, isWhole: true),
          .tells(3, started: 5, isWhole: false),
        ], 4
      ),
      (
        "a whole vector replaces all",
        [
          .begin, .tells(4, started: 5, isWhole: true),
          .tells(3, started: 5, isWhole: true),
        ], 3
      ),
      (
        "what a peer told stays when it is away",
        [.begin, .tells(3, started: 5, isWhole: true), .end], 3
      ),
      ("a statement", [.says(3, started: 5, number: 1)], 3),
      ("a statement of the same vector", [.says(nil, started: 5, number: 1)], 9),
      ("no more than was signed", [.says(1_000, started: 5, number: 1)], 9),
      (
        "statements of a process add up",
        [.says(4, started: 5, number: 1), .says(3, started: 5, number: 2)], 4
      ),
      (
        "an earlier statement is passed over",
        [.says(3, started: 5, number: 2), .says(4, started: 5, number: 1)], 3
      ),
      (
        "a later process replaces an earlier one",
        [.says(4, started: 5, number: 7), .says(3, started: 6, number: 1)], 3
      ),
      (
        "an earlier process does not count",
        [.says(3, started: 6, number: 1), .says(4, started: 5, number: 7)], 3
      ),
      ("too far ahead", [.says(3, started: 2_000, number: 1)], nil),
      (
        "a statement of the process at the other end adds up",
        [.begin, .tells(3, started: 5, isWhole: true), .says(4, started: 5, number: 1)],
        4
      ),
      (
        "while a device is connected only its own process speaks for it",
        [.begin, .tells(3, started: 5, isWhole: true), .says(4, started: 8, number: 1)],
        3
      ),
      (
        "words of another process are passed over until it tells a whole vector",
        [.begin, .tells(3, started: 5, isWhole: true), .tells(4, started: 8, isWhole: false)], 3
      ),
      (
        "they do not say which process runs",
        [
          .begin, .tells(3, started: 5, isWhole: true), .tells(4, started: 8, isWhole: false),
          .end, .says(4, started: 6, number: 1),
        ], 4
      ),
      (
        "another process tells a whole vector",
        [.begin, .tells(3, started: 5, isWhole: true), .tells(2, started: 8, isWhole: true)], 2
      ),
      (
        "a process that started during a session counts after it",
        [
          .begin, .tells(3, started: 5, isWhole: true), .says(4, started: 8, number: 1),
          .end,
        ], 4
      ),
      (
        "one that started before does not",
        [.says(4, started: 8, number: 1), .begin, .tells(3, started: 9, isWhole: true), .end], 3
      ),
      (
        "a session shows which process runs, whatever it says of its start",
        [.says(4, started: 8, number: 1), .begin, .tells(3, started: 5, isWhole: true)], 3
      ),
      ("a former member", [.says(3, started: 5, number: 1), .isNoMember], nil),
    ]
    for (name, events, wanted) in cases {
      var coverage = coverage(of: 0, among: 2)
      look(&coverage)
      for event in events {
        switch event {
        case .begin: coverage.begin(session, with: keys[1].id, isMember: true)
        case .end:
          coverage.end(session)
          look(&coverage)
        case .tells(let sequence, let started, let isWhole):
          coverage.hear(
            [chain: UInt64(sequence)], of: store, isWhole: isWhole, on: session,
            started: time(started), at: 0, isKnown: { $0 == chain })
        case .says(let sequence, let started, let number):
          let heard = hear(
            [statement(sequence, by: 1, started: started, number: number)], &coverage)
          #expect(heard == .taken, "\(name)")
        case .isNoMember:
          coverage.setMembers([keys[0].id])
          coverage.forget([keys[1].id])
        }
      }
      let known = coverage.covered(by: keys[1].id, of: store)[chain]
      #expect(known == wanted, "\(name)")
      #expect(coverage.covers([chain: 3], of: store, keys[1].id) == (wanted ?? 0 >= 3))
    }
  }

  /// Simulator seeds 350000027, 350000149 and 350000236: nothing rose after a start, and with more
  /// chains than a statement names a process never knew that others have what it published.
  @Test func `a process that starts compares statements with the vectors on its disk`() {
    var coverage = coverage(of: 0, among: 2)
    coverage.start(at: time(7), stores: [store])
    #expect(hear([statement(nil, by: 1, started: 5, number: 1)], &coverage) == .taken)
    pass(&coverage)
    #expect(coverage.covers([chain: 9], of: store, keys[1].id))
  }

  @Test func `copies that begin at one reading have different starts`() {
    let reading = HybridTime(rawValue: 7 << 12)
    let starts = [0, 1, 2].map { number in
      Coverage.start(of: ProcessID(Digest128 { $0[1] = number }), at: reading)
    }
    #expect(Set(starts).count == 3 && starts.allSatisfy { $0 >= reading && $0.counter < 0x800 })
  }

  @Test func `the device knows whether all others cover a change set, and what each lacks`() {
    var coverage = coverage(of: 0, among: 3)
    let changeSet = unsigned(3, of: chain).reference
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == nil)
    for (peer, covered) in [(1, 2), (2, 9)] as [(Int, UInt64)] {
      let session = SessionID(rawValue: UInt64(peer))
      coverage.begin(session, with: keys[peer].id, isMember: true)
      coverage.hear(
        [chain: covered], of: store, isWhole: true, on: session, started: time(5), at: 0,
        isKnown: { _ in true })
    }
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.coveredByAllOthers(of: store)(unsigned(2, of: chain).reference))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == 7)
    #expect(coverage.lacking([chain: 8], of: store, keys[2].id) == 0)
  }

  /// Has it compare what it holds with the own vector.
  private func look(_ coverage: inout Coverage) {
    coverage.rise(store, at: 0)
    pass(&coverage)
  }

  private func pass(_ coverage: inout Coverage) {
    coverage.setTime(at: 0, jitter: 0)
    _ = coverage.pass(
      at: 1_000, isOpen: { _ in true }, own: { _ in Coverage.Own(vector: [chain: 9], latest: [:]) },
      sign: { Statement($0, age: $1, account: account, keys: keys[0]) },
      received: { $1 == chain ? 9 : 0 })
  }

  @Test func `of what comes in a device's name nothing counts but what it signed`() {
    var coverage = coverage(of: 0, among: 2)
    let truth = statement(3, by: 1, started: 5, number: 1)
    var group = StatementGroup.groups(of: [truth])[0]
    group.said[0].age.number = 2
    let lie = coverage.hear(
      [group], in: account, at: Instant(wallMilliseconds: 0, monotonicMilliseconds: 0),
      isTooFarAhead: { _ in false }, isRefuted: { _ in false },
      isKnown: { _ in true },
      received: { _, _ in 9 }, with: nil)
    #expect(lie == .forged)
    #expect(coverage.table.count == 0)
    // A stranger's is passed over, and so is one about a store that is not known.
    let stranger = hear([statement(3, by: 7, started: 5, number: 1)], &coverage)
    #expect(stranger == .taken)
    #expect(coverage.table.count == 0)
    let member = hear([truth], &coverage)
    #expect(member == .taken)
    #expect(coverage.table.count == 1)
  }

  @Test func `a process learns what another one of its device said`() {
    var coverage = coverage(of: 0, among: 2)
    coverage.start(at: time(10), stores: [store])
    for (started, wanted): (Int, Coverage.Heard) in [
      (9, .taken), (11, .otherProcess(time(11))), (5_000, .taken),
    ] {
      let heard = hear([statement(3, by: 0, started: started, number: 7)], &coverage)
      #expect(heard == wanted)
    }
    let ahead = hear(
      [statement(3, by: 0, started: 5_000, number: 7)], &coverage, isRefuted: { _ in true })
    #expect(ahead == .otherProcess(nil), "it starts anew, and does not follow")
    #expect(coverage.table.count == 0)
    let interval = Limits.haveIntervalMilliseconds
    let may = [0, 1, interval, interval + 1].map { coverage.mayStartAnew(at: $0) }
    #expect(may == [true, false, true, false], "two copies would take turns without end")
  }

  /// A process with a clock 24 minutes ahead was heard, by a device whose clock was as wrong. Now the
  /// clocks are right (simulator seed 803000445). Of the device's processes only those count again
  /// that started after the wrong one was heard: others may cover what was lost before it.
  @Test(
    arguments: [
      (true, 300, true, true), (true, 300, false, true), (true, 241, true, true),
      (true, 239, true, false), (true, 239, false, false), (false, 300, true, false),
    ])
  func `a start that is refuted counts no more, though it is later`(
    isCertain: Bool, started: Int, wasMet: Bool, counts: Bool
  ) {
    func seconds(_ number: Int) -> HybridTime {
      HybridTime(milliseconds: 1_800_000_000_000 + UInt64(number) * 1_000)
    }
    func statement(_ sequence: Int, started: HybridTime) -> Statement {
      Statement(
        Extent(store, digest: Blake2b.digest256([]), entries: [chain: UInt64(sequence)]),
        age: StatementAge(started: started, number: 7), account: account, keys: keys[1])
    }
    func hear(_ statement: Statement, at now: Int, isRefuted: (HybridTime) -> Bool) {
      let heard = coverage.hear(
        StatementGroup.groups(of: [statement]), in: account,
        at: Instant(
          wallMilliseconds: seconds(now).milliseconds,
          monotonicMilliseconds: UInt64(now + 7) * 1_000),
        isTooFarAhead: { _ in false }, isRefuted: isRefuted, isKnown: { $0 == store },
        received: { $1 == chain ? 9 : 0 }, with: nil)
      #expect(heard == .taken)
    }
    var coverage = coverage(of: 0, among: 2)
    let session = SessionID(rawValue: 1)
    if wasMet {
      coverage.begin(session, with: keys[1].id, isMember: true)
      coverage.hear(
        [chain: 4], of: store, isWhole: true, on: session, started: seconds(1_740),
        at: 307_000, isKnown: { _ in true })
      coverage.end(session)
    }
    hear(statement(4, started: seconds(1_740)), at: 300) { _ in false }
    for number in 0..<2 {
      let changes = coverage.table.changes
      hear(statement(3, started: seconds(started)), at: 400) {
        isCertain && $0 > seconds(460)
      }
      let isNews = counts && number == 0
      #expect((coverage.table.changes > changes) == isNews)
      #expect(coverage.covered(by: keys[1].id, of: store) == [chain: counts ? 3 : 4])
    }
  }

  /// Otherwise a process that is gone at once is known to one peer, and no word of the device's
  /// others counts there any more (simulator seed 300000275).
  @Test func `a peer is told of a process by a statement, once a session`() {
    var coverage = coverage(of: 0, among: 2)
    coverage.start(at: time(5), stores: [store])
    let (session, stranger) = (SessionID(rawValue: 1), SessionID(rawValue: 2))
    coverage.begin(session, with: keys[1].id, isMember: true)
    coverage.begin(stranger, with: keys[2].id, isMember: false)
    func said(on session: SessionID) -> [StatementAge] {
      coverage.introduce(
        [store], on: session, at: 0, own: { _ in Coverage.Own(vector: [chain: 9], latest: [:]) },
        sign: { Statement($0, age: $1, account: account, keys: keys[0]) }
      ).said.flatMap { $0.said.map(\.age) }
    }
    #expect(said(on: stranger).isEmpty)
    #expect(said(on: session) == [StatementAge(started: time(5), number: 1)])
    #expect(said(on: session).isEmpty)
    // It speaks anew, as another process would.
    coverage.start(at: time(6), stores: [store])
    #expect(said(on: session) == [StatementAge(started: time(6), number: 1)])
  }

  @Test func `statements are kept up to a bound, and those that are kept can still be renewed`()
    throws
  {
    var table = StatementTable()
    func statement(_ number: Int, age: UInt32) throws -> Statement {
      let store = try #require(StoreIdentifier("com.example.S\(number)"))
      let extent = Extent(store, digest: Extent.digest(of: [:]), entries: [:])
      // The table trusts its caller to have checked the signature: making many takes time.
      let said = StatementGroup.Said(
        device: 0, age: StatementAge(started: .zero, number: age), signature: signature)
      return Statement(said, by: keys[0].id, extent: extent)
    }
    let signature = self.statement(1, by: 0, started: 1, number: 1).signature
    for number in 0..<Limits.statements {
      let isTaken = table.insert(try statement(number, age: 1), at: 0)
      #expect(isTaken)
    }
    var isTaken = table.insert(try statement(Limits.statements, age: 1), at: 0)
    #expect(!isTaken && table.count == Limits.statements)
    isTaken = table.insert(try statement(0, age: 2), at: 0)
    #expect(isTaken && table.count == Limits.statements)
    isTaken = table.insert(try statement(0, age: 2), at: 0)
    #expect(!isTaken)
    table.keep { _ in false }
    #expect(table.count == 0)
    isTaken = table.insert(try statement(Limits.statements, age: 1), at: 0)
    #expect(isTaken)
  }

  // MARK: Left behind

  @Test func `a device that does not cover old change sets is reported once as left behind`() {
    var coverage = coverage(of: 0, among: 3)
    let vectors = [store: [chain: 1 as UInt64]]
    func look(_ now: UInt64, _ connected: Set<DeviceID> = []) -> [DeviceID]? {
      coverage.lookForLeftBehind(at: now, connected: connected, vectors: { vectors })
    }
    coverage.rise(store, at: 0)
    let both = [keys[1].id, keys[2].id].sorted()
    let patience = Limits.leftBehindMilliseconds
    #expect(look(0) == nil)
    #expect(look(patience) == both)
    #expect(look(patience + 1) == nil, "not looked at so soon")
    #expect(look(2 * patience) == nil, "no news")
    #expect(look(3 * patience, [keys[1].id]) == [keys[2].id])
    _ = hear([statement(1, by: 2, started: 5, number: 1)], &coverage)
    #expect(look(4 * patience, [keys[1].id]) == [])
    coverage.rise(store, at: 5 * patience)
    #expect(look(5 * patience) == nil, "not old yet")
  }

  // MARK: Spreading

  /// Devices with sessions between some of them; what they send arrives at once.
  private struct Net {
    var devices: [Coverage]
    var edges: [SessionID: (Int, Int)] = [:]
    var delivered = 0
    var asks = 0
  }

  private func pass(_ net: inout Net, from start: UInt64, until end: UInt64) {
    for now in stride(from: start, to: end, by: 10) {
      for index in net.devices.indices {
        if net.devices[index].needsTime(at: now) {
          net.devices[index].setTime(at: now, jitter: UInt64(index * 37 % 256))
        }
        guard let due = net.devices[index].dueAt, due <= now else { continue }
        let keys = keys[index]
        let tellings = net.devices[index].pass(
          at: now, isOpen: { _ in true },
          own: { _ in Coverage.Own(vector: [chain: 9], latest: [chain: 9]) },
          sign: { Statement($0, age: $1, account: account, keys: keys) },
          received: { _, _ in 9 }
        ).tellings
        for telling in tellings { deliver(telling, from: index, &net, now) }
      }
    }
  }

  private func deliver(
    _ telling: Coverage.Telling, from index: Int, _ net: inout Net, _ now: UInt64
  ) {
    guard let (a, b) = net.edges[telling.session] else { return }
    let other = index == a ? b : a
    net.delivered += telling.groups.reduce(0) { $0 + $1.said.count }
    net.asks += telling.held.count { $0.asksBut != nil }
    let heard = net.devices[other].hear(
      telling.groups, in: account, at: Instant(wallMilliseconds: 0, monotonicMilliseconds: 0),
      isTooFarAhead: { _ in false }, isRefuted: { _ in false },
      isKnown: { _ in true },
      received: { _, _ in 9 }, with: nil)
    #expect(heard == .taken)
    for held in telling.held {
      if let answer = net.devices[other].compare(
        held, isRenewed: false, on: telling.session, at: now)
      {
        deliver(answer, from: other, &net, now)
      }
    }
  }

  @Test func `each statement comes to each device once, over whatever sessions there are`() {
    let shapes: [(String, [(Int, Int)])] = [
      ("two", [(0, 1)]),
      ("a line", (1..<8).map { ($0 - 1, $0) }),
      ("a ring", (0..<8).map { ($0, ($0 + 1) % 8) }),
      ("all with all", (0..<8).flatMap { a in (a + 1..<8).map { (a, $0) } }),
      ("a star", (1..<12).map { (0, $0) }),
    ]
    for (name, shape) in shapes {
      let count = (shape.map { max($0.0, $0.1) }.max() ?? 0) + 1
      var net = Net(devices: (0..<count).map { coverage(of: $0, among: count) })
      for index in net.devices.indices { net.devices[index].start(at: time(5), stores: [store]) }
      for (number, (a, b)) in shape.enumerated() {
        let session = SessionID(rawValue: UInt64(number + 1))
        net.edges[session] = (a, b)
        net.devices[a].begin(session, with: keys[b].id, isMember: true)
        net.devices[b].begin(session, with: keys[a].id, isMember: true)
        // Each tells its peer what it starts from.
        for index in [a, b] {
          net.devices[index].hear(
            [chain: 9], of: store, isWhole: true, on: session, started: time(5), at: 0,
            isKnown: { _ in true })
        }
      }
      for index in net.devices.indices { net.devices[index].rise(store, at: 0) }
      pass(&net, from: 0, until: 20_000)
      for device in net.devices {
        #expect(device.table.count == count, "\(name)")
        #expect(
          keys.prefix(count).allSatisfy { key in
            key.id == device.device || device.covers([chain: 9], of: store, key.id)
          }, "\(name)")
      }
      #expect(net.delivered == count * (count - 1), "\(name): each once")
      // Nothing more is asked.
      let asks = net.asks
      pass(&net, from: 20_000, until: 40_000)
      #expect(net.asks == asks, "\(name)")
      // The next ones: no device sends an old one to a peer that has a later one.
      for index in net.devices.indices { net.devices[index].rise(store, at: 40_000) }
      pass(&net, from: 40_000, until: 60_000)
      #expect(net.delivered == 2 * count * (count - 1), "\(name): each once again")
      let digests = net.devices.indices.map { net.devices[$0].table.digest(of: store) }
      #expect(Set(digests).count == 1, "\(name)")
    }
  }

  @Test func `a peer that does not answer is asked once, and then another`() {
    var coverage = coverage(of: 0, among: 3)
    coverage.start(at: time(5), stores: [])
    let digest = {
      var table = StatementTable()
      _ = table.insert(statement(1, by: 2, started: 5, number: 1), at: 0)
      return table.digest(of: store)
    }()
    let (first, second) = (SessionID(rawValue: 1), SessionID(rawValue: 2))
    for (session, index) in [(first, 1), (second, 2)] {
      coverage.begin(session, with: keys[index].id, isMember: true)
      _ = coverage.compare(
        HeldStatements(store, digest: digest), isRenewed: false, on: session, at: 100)
    }
    func asked(_ now: UInt64) -> [SessionID] {
      coverage.pass(
        at: now, isOpen: { _ in true }, own: { _ in nil },
        sign: { Statement($0, age: $1, account: account, keys: keys[0]) },
        received: { _, _ in 0 }
      ).tellings.filter { $0.held.contains { $0.asksBut != nil } }.map(\.session)
    }
    #expect(asked(100) == [first])
    #expect(asked(200) == [])
    #expect(coverage.dueAt == 100 + Limits.statementAnswerMilliseconds)
    #expect(asked(100 + Limits.statementAnswerMilliseconds) == [second])
    coverage.end(second)
    #expect(asked(10_000) == [], "the first has the same as before")
    // Its next full `Have` makes it worth another try.
    _ = coverage.compare(
      HeldStatements(store, digest: digest), isRenewed: true, on: first, at: 10_000)
    #expect(asked(10_000) == [first])
  }

  @Test func `statements that both held when they told the same digest are not named and not sent`()
  {
    var coverage = coverage(of: 0, among: 4)
    coverage.start(at: time(5), stores: [])
    let session = SessionID(rawValue: 1)
    coverage.begin(session, with: keys[1].id, isMember: true)
    _ = hear([statement(1, by: 1, started: 5, number: 1)], &coverage)
    func compare(_ held: HeldStatements) -> [Int] {
      let answer = coverage.compare(held, isRenewed: false, on: session, at: 100)
      return (answer?.groups ?? []).flatMap(\.said).compactMap { said in
        keys.firstIndex { $0.id.shortName == said.device }
      }.sorted()
    }
    var empty = StatementTable()
    let other = empty.digest(of: store)
    #expect(
      compare(HeldStatements(store, digest: other, asksBut: [])) == [1], "nothing was agreed")
    // The answer told the digest; now the peer tells it too.
    #expect(compare(HeldStatements(store, digest: coverage.table.digest(of: store))) == [])
    let new = statement(1, by: 2, started: 5, number: 1)
    _ = hear([new, statement(1, by: 3, started: 5, number: 1)], &coverage)
    #expect(
      compare(HeldStatements(store, digest: other, asksBut: [new.name(in: other)])) == [3])
    #expect(compare(HeldStatements(store, digest: other, asksBut: [])) == [2, 3], "not 1")
    let questions = coverage.pass(
      at: 100, isOpen: { _ in true }, own: { _ in nil },
      sign: { Statement($0, age: $1, account: account, keys: keys[0]) },
      received: { _, _ in 0 }
    ).tellings.flatMap(\.held).compactMap(\.asksBut)
    #expect(questions.map(\.count) == [2], "named are 2 and 3")
    coverage.setMembers(keys.prefix(4).map(\.id))
    #expect(compare(HeldStatements(store, digest: other, asksBut: [])) == [1, 2, 3])
  }

  @Test func `a device that lacks only the newest writes is not late`() {
    var coverage = coverage(of: 0, among: 2)
    let (session, peer) = (SessionID(rawValue: 1), keys[1].id)
    coverage.begin(session, with: peer, isMember: true)
    func lag(_ sequence: UInt64, at time: UInt64) -> UInt64? {
      coverage.lag(of: peer, behind: [store: [chain: sequence]], at: time)
    }
    func tell(_ sequence: UInt64) {
      coverage.hear(
        [chain: sequence], of: store, isWhole: true, on: session, started: time(1), at: 0
      ) { _ in true }
    }
    let unheard = [lag(1, at: 10), lag(2, at: 20)]
    #expect(unheard == [10, 10], "nothing is known of it")
    tell(2)
    let upToDate = lag(2, at: 30)
    #expect(upToDate == nil)
    // It follows, always one behind.
    var always: [UInt64?] = []
    for sequence in 3...6 as ClosedRange<UInt64> {
      always.append(lag(sequence, at: sequence * 100))
      tell(sequence)
      always.append(lag(sequence + 1, at: sequence * 100 + 50))
    }
    #expect(always.last == 650)
    let stuck = [lag(8, at: 1_000), lag(9, at: 2_000)]
    #expect(stuck == [650, 650])
  }
}
