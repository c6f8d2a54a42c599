import KithCrypto
import Testing

@testable import KithCore

/// The rules for words and sessions, who is left behind, and how words spread, without a replica.
@Suite struct CoverageTests {
  private let store: StoreIdentifier
  private let account = AccountID(Blake2b.digest256([]))
  private let keys = (0..<12 as Range<UInt64>).map { deviceKeys(40 + $0) }
  private let chain: ChainID
  private let session = SessionID(rawValue: 1)

  init() throws {
    store = try #require(StoreIdentifier("com.example.Tests"))
    chain = ChainID(device: keys[0].id, incarnation: Incarnation(rawValue: 1))
  }

  /// Of the first device it is process 1, of the next one 2 …
  private func coverage(of index: Int, among count: Int) -> Coverage {
    let process = ProcessID(Digest128 { $0[7] = UInt8(index + 1) })
    var coverage = Coverage(account: account, keys: keys[index], process: process)
    coverage.setMembers(keys.prefix(count).map(\.id))
    return coverage
  }

  private func own(_ sequence: UInt64) -> Coverage.Own {
    let published = ChangeSetLog.Published(clock: .zero, chain: chain, covered: sequence)
    return Coverage.Own(
      extent: Coverage.Extent(vector: [chain: sequence]), latest: [published])
  }

  private func instant(_ milliseconds: UInt64, wall: UInt64 = 0) -> Instant {
    Instant(wallMilliseconds: wall, monotonicMilliseconds: milliseconds)
  }

  /// A word that names a sequence, or says that the vector is that of a device which covers 9.
  private func word(
    _ sequence: UInt64?, by index: Int = 1, process: UInt64, number: UInt64, isBelow: Bool = false
  ) -> Word {
    let said = WordContent.Store(
      digest: WordContent.digest(of: sequence == nil ? [chain: 9] : [:]),
      latest: sequence.map { [chain: $0] } ?? [:], isBelow: isBelow)
    return Word(
      WordContent([store: said]), version: Word.Version(number: number, process: process),
      account: account, keys: keys[index])
  }

  private func hear(_ words: [Word], _ coverage: inout Coverage, on session: SessionID? = nil)
    -> Bool
  {
    coverage.hear(WordGroup.groups(of: words), on: session, at: 0, with: nil)
  }

  /// Has it cover a chain through a sequence.
  private func cover(_ sequence: UInt64, _ coverage: inout Coverage) {
    coverage.rise(store, at: 0)
    coverage.look(at: [store]) { _ in own(sequence) }
  }

  /// An event of one chain that device 0 hears of device 1.
  private enum Event {
    /// A session with a process begins.
    case begin(UInt64)
    case end
    /// The peer tells its vector.
    case tells(UInt64, isWhole: Bool = false)
    /// A word comes.
    case says(UInt64?, process: UInt64, number: UInt64)
    /// Device 0 covers so much.
    case covers(UInt64)
    case isRevoked
  }

  /// At first device 0 covers the chain through 9.
  @Test func `the rule, event by event`() {
    let cases: [(String, [Event], UInt64?)] = [
      ("nothing is known", [], nil),
      ("a peer tells", [.begin(5), .tells(3, isWhole: true)], 3),
      ("a peer tells more", [.begin(5), .tells(3, isWhole: true), .tells(4)], 4),
      ("its late message lowers nothing", [.begin(5), .tells(4, isWhole: true), .tells(3)], 4),
      (
        "a whole vector replaces all",
        [.begin(5), .tells(4, isWhole: true), .tells(3, isWhole: true)], 3
      ),
      ("nothing counts before a whole vector", [.begin(5), .tells(4)], nil),
      ("what a peer told stays", [.begin(5), .tells(3, isWhole: true), .end], 3),
      (
        "a session of another process replaces it",
        [.begin(5), .tells(4, isWhole: true), .end, .begin(6), .tells(3, isWhole: true)], 3
      ),
      ("a word", [.says(3, process: 5, number: 1)], 3),
      ("a word of the same vector", [.says(nil, process: 5, number: 1)], 9),
      ("no more than is known here", [.says(1_000, process: 5, number: 1)], 9),
      ("until more is", [.says(1_000, process: 5, number: 1), .covers(12)], 12),
      ("a word compared later", [.covers(8), .says(nil, process: 5, number: 1), .covers(9)], 9),
      (
        "words of a process add up",
        [.says(4, process: 5, number: 1), .says(3, process: 5, number: 2)], 4
      ),
      (
        "an earlier word is passed over",
        [.says(3, process: 5, number: 2), .says(4, process: 5, number: 1)], 3
      ),
      (
        "a word of another process replaces all",
        [.says(4, process: 5, number: 7), .says(3, process: 2, number: 8)], 3
      ),
      (
        "of one number that of the higher process counts",
        [
          .says(4, process: 5, number: 7), .says(3, process: 6, number: 7),
          .says(8, process: 5, number: 7),
        ], 3
      ),
      (
        "a word of the process at the other end adds up",
        [.begin(5), .tells(3, isWhole: true), .says(4, process: 5, number: 1)], 4
      ),
      (
        "beside a session another process counts, too: it covers less",
        [.begin(5), .tells(4, isWhole: true), .says(3, process: 8, number: 1)], 3
      ),
      (
        "it covers more",
        [.begin(5), .tells(3, isWhole: true), .says(nil, process: 8, number: 1)], 3
      ),
      (
        "it covers more, once the session told it",
        [.begin(5), .tells(3, isWhole: true), .says(nil, process: 8, number: 1), .tells(4)], 4
      ),
      (
        "what the session tells does not replace it",
        [
          .begin(5), .tells(3, isWhole: true), .says(2, process: 8, number: 1),
          .tells(4, isWhole: true),
        ], 2
      ),
      (
        "until the session ends",
        [.begin(5), .tells(3, isWhole: true), .says(4, process: 8, number: 1), .end], 4
      ),
      (
        "until the session's process speaks again",
        [
          .begin(5), .tells(4, isWhole: true), .says(3, process: 8, number: 1),
          .says(2, process: 5, number: 2),
        ], 4
      ),
      (
        "a session replaces a word of another process, for good",
        [.says(4, process: 8, number: 1), .begin(5), .tells(3, isWhole: true), .covers(9), .end], 3
      ),
      (
        "a session replaces a word",
        [
          .says(4, process: 5, number: 1), .begin(5), .tells(3, isWhole: true),
        ], 3
      ),
      ("a revoked device", [.says(3, process: 5, number: 1), .isRevoked], nil),
      (
        "its words do not count again",
        [.says(3, process: 5, number: 1), .isRevoked, .says(3, process: 5, number: 2)], nil
      ),
    ]
    for (name, events, wanted) in cases {
      var coverage = coverage(of: 0, among: 2)
      cover(9, &coverage)
      for event in events {
        switch event {
        case .begin(let process):
          coverage.begin(session, with: keys[1].id, process: process, isMember: true)
        case .end: coverage.end(session)
        case .tells(let sequence, let isWhole):
          coverage.hear(
            Coverage.Extent(vector: [chain: sequence]), of: store, isWhole: isWhole, on: session,
            isKnown: { $0 == chain })
        case .says(let sequence, let process, let number):
          let isSound = hear([word(sequence, process: process, number: number)], &coverage)
          #expect(isSound, "\(name)")
        case .covers(let sequence): cover(sequence, &coverage)
        case .isRevoked:
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
  /// chains than a word names a process never knew that others have what it published.
  @Test func `a process that starts compares words with the vectors on its disk`() {
    var coverage = coverage(of: 0, among: 2)
    #expect(hear([word(nil, process: 5, number: 1)], &coverage))
    coverage.look(at: [store]) { _ in own(9) }
    #expect(coverage.covers([chain: 9], of: store, keys[1].id))
  }

  @Test func `a device below its horizon has nothing, until it says otherwise`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    func has() -> Bool { coverage.covers([chain: 9], of: store, keys[1].id) }
    #expect(hear([word(nil, process: 5, number: 1, isBelow: true)], &coverage))
    #expect(!has() && coverage.areOthersBelow(in: store))
    cover(9, &coverage)
    #expect(!has(), "no other word came")
    #expect(hear([word(nil, process: 5, number: 2)], &coverage))
    #expect(has())
    coverage.begin(session, with: keys[1].id, process: 5, isMember: true)
    coverage.hear(
      Coverage.Extent(vector: [chain: 9], isBelow: true), of: store, isWhole: true, on: session,
      isKnown: { $0 == chain })
    #expect(!has())
    #expect(hear([word(nil, process: 8, number: 3)], &coverage))
    #expect(!has(), "both must say it")
  }

  @Test func `the device knows whether all others cover a change set, and what each lacks`() {
    var coverage = coverage(of: 0, among: 3)
    let changeSet = unsigned(3, of: chain).reference
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == nil)
    for (peer, covered) in [(1, 2), (2, 9)] as [(Int, UInt64)] {
      let session = SessionID(rawValue: UInt64(peer))
      coverage.begin(session, with: keys[peer].id, process: 5, isMember: true)
      coverage.hear(
        Coverage.Extent(vector: [chain: covered]), of: store, isWhole: true, on: session,
        isKnown: { $0 == chain })
    }
    #expect(!coverage.coveredByAllOthers(of: store)(changeSet))
    #expect(coverage.coveredByAllOthers(of: store)(unsigned(2, of: chain).reference))
    #expect(coverage.lacking([chain: 9], of: store, keys[1].id) == 7)
    #expect(coverage.lacking([chain: 8], of: store, keys[2].id) == 0)
  }

  @Test func `of what comes in a device's name nothing counts but what it signed`() {
    var coverage = coverage(of: 0, among: 2)
    let truth = word(3, process: 5, number: 1)
    var group = WordGroup.groups(of: [truth])[0]
    group.said[0].version.number = 2
    let isSound = coverage.hear([group], at: 0, with: nil)
    #expect(!isSound && coverage.words.isEmpty)
    // A stranger's is passed over.
    #expect(hear([word(3, by: 7, process: 5, number: 1)], &coverage))
    #expect(coverage.words.isEmpty)
    #expect(hear([truth], &coverage))
    #expect(coverage.words.count == 1)
  }

  // MARK: Own words

  private func said(_ coverage: Coverage) -> Word.Version? { coverage.words[keys[0].id]?.version }

  @Test func `a number is the time, and above all words of the device`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    coverage.say(at: instant(0, wall: 1_000))
    #expect(said(coverage) == Word.Version(number: 1_000, process: 1))
    cover(10, &coverage)
    coverage.say(at: instant(1_000, wall: 900))
    #expect(said(coverage)?.number == 1_001, "the clock was set back")
    coverage.say(at: instant(2_000, wall: 2_000))
    #expect(said(coverage)?.number == 1_001, "it says what is covered")
    #expect(hear([word(3, by: 0, process: 5, number: 7_000)], &coverage))
    coverage.say(at: instant(40_000, wall: 2_000))
    #expect(said(coverage) == Word.Version(number: 7_001, process: 1))
  }

  @Test func `a process that hears a word of another one answers it, but not at once again`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    #expect(hear([word(3, by: 0, process: 5, number: 100)], &coverage))
    coverage.say(at: instant(0))
    #expect(said(coverage) == Word.Version(number: 101, process: 1), "it said nothing before")
    #expect(hear([word(3, by: 0, process: 5, number: 102)], &coverage))
    let interval = Limits.haveIntervalMilliseconds
    coverage.say(at: instant(interval - 1))
    #expect(said(coverage)?.process == 5, "two copies would answer each other without end")
    #expect(coverage.passesAt == interval)
    coverage.say(at: instant(interval))
    #expect(said(coverage) == Word.Version(number: 103, process: 1))
    // It covers what the other said.
    let same = WordGroup.groups(of: coverage.words.values)[0].content
    let other = Word(
      same, version: Word.Version(number: 200, process: 5), account: account, keys: keys[0])
    #expect(hear([other], &coverage))
    coverage.say(at: instant(3 * interval))
    #expect(said(coverage) == other.version)
  }

  @Test func `words are made at most so often, the more seldom the more members`() {
    for (count, pace) in [(2, 200), (12, 240)] as [(Int, UInt64)] {
      var coverage = coverage(of: 0, among: count)
      cover(1, &coverage)
      coverage.say(at: instant(0))
      let first = said(coverage)
      cover(2, &coverage)
      coverage.say(at: instant(pace - 1))
      #expect(said(coverage) == first && coverage.passesAt == pace)
      coverage.say(at: instant(pace))
      #expect(said(coverage) != first)
      let second = said(coverage)
      cover(3, &coverage)
      coverage.say(at: instant(pace), isPaced: false)
      #expect(said(coverage) != second)
    }
  }

  @Test func `a device whose last number somebody used says no more`() {
    var coverage = coverage(of: 0, among: 2)
    cover(9, &coverage)
    #expect(hear([word(3, by: 0, process: 5, number: Word.lastNumber)], &coverage))
    #expect(coverage.isSilenced)
    coverage.say(at: instant(0))
    #expect(said(coverage)?.number == Word.lastNumber && coverage.isSilenced)
  }

  /// Otherwise a process that is gone at once is known to one peer, and no word of the device's
  /// others counts there any more (simulator seed 300000275).
  @Test func `a process makes a word before its first Have, and introduces itself once a session`()
  {
    var coverage = coverage(of: 0, among: 3)
    cover(9, &coverage)
    let (second, stranger) = (SessionID(rawValue: 2), SessionID(rawValue: 3))
    for (session, index) in [(session, 1), (second, 2), (stranger, 7)] {
      coverage.begin(session, with: keys[index].id, process: 5, isMember: session != stranger)
    }
    // An earlier process said the same.
    let content = WordContent([
      store: WordContent.Store(
        digest: WordContent.digest(of: [chain: 9]), latest: [chain: 9])
    ])
    let earlier = Word(
      content, version: Word.Version(number: 50, process: 9), account: account, keys: keys[0])
    #expect(hear([earlier], &coverage))
    func told(on session: SessionID) -> ([Word.Version], Bool) {
      let told = coverage.introduce(on: session, at: instant(0))
      return (told.words.flatMap { $0.said.map(\.version) }, told.digest == coverage.digest)
    }
    #expect(told(on: stranger) == ([], false))
    #expect(told(on: session) == ([Word.Version(number: 51, process: 1)], true))
    #expect(told(on: session) == ([], true))
    #expect(told(on: second) == ([Word.Version(number: 51, process: 1)], true))
  }

  // MARK: Left behind

  @Test func `a device that does not cover old change sets is reported once as left behind`() {
    var coverage = coverage(of: 0, among: 3)
    let vectors = [store: [chain: 1 as UInt64]]
    func look(_ now: UInt64, _ connected: Set<DeviceID> = []) -> [DeviceID]? {
      coverage.lookForLeftBehind(at: now, connected: connected, vectors: { vectors })
    }
    cover(1, &coverage)
    let both = [keys[1].id, keys[2].id].sorted()
    let patience = Limits.leftBehindMilliseconds
    #expect(look(0) == nil)
    #expect(look(patience) == both)
    #expect(look(patience + 1) == nil, "not looked at so soon")
    #expect(look(2 * patience) == nil, "no news")
    #expect(look(3 * patience, [keys[1].id]) == [keys[2].id])
    #expect(hear([word(1, by: 2, process: 5, number: 1)], &coverage))
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
    /// A session whose messages are lost.
    var lost: SessionID?

    mutating func connect(_ a: Int, _ b: Int) {
      let session = SessionID(rawValue: UInt64(edges.count + 1))
      edges[session] = (a, b)
      for (index, other) in [(a, b), (b, a)] {
        devices[index].begin(
          session, with: devices[other].device, process: devices[other].process, isMember: true)
      }
    }
  }

  private func pass(_ net: inout Net, from start: UInt64, until end: UInt64) {
    for now in stride(from: start, to: end, by: 10) {
      for index in net.devices.indices {
        if net.devices[index].needsTime(at: now) {
          net.devices[index].setTime(at: now, jitter: UInt64(index * 37 % 256))
        }
        guard let due = net.devices[index].dueAt, due <= now else { continue }
        let tellings = net.devices[index].pass(
          at: instant(now, wall: now), isOpen: { _ in true }, stores: [store], own: { _ in own(9) }
        ).tellings
        for telling in tellings where telling.session != net.lost {
          deliver(telling, from: index, &net, now)
        }
      }
    }
  }

  private func deliver(
    _ telling: Coverage.Telling, from index: Int, _ net: inout Net, _ now: UInt64
  ) {
    guard let (a, b) = net.edges[telling.session] else { return }
    net.delivered += telling.words.reduce(0) { $0 + $1.said.count }
    let isSound = net.devices[index == a ? b : a].hear(
      telling.words, on: telling.session, at: now, with: nil)
    #expect(isSound)
  }

  @Test func `words come to each device, over whatever sessions there are, and then nothing does`()
  {
    let shapes: [(String, [(Int, Int)], most: Int)] = [
      ("two", [(0, 1)], 2),
      ("a line", (1..<8).map { ($0 - 1, $0) }, 8 * 7),
      ("a star", (1..<12).map { (0, $0) }, 12 * 11),
      ("a ring", (0..<8).map { ($0, ($0 + 1) % 8) }, 8 * 9),
      ("all with all", (0..<8).flatMap { a in (a + 1..<8).map { (a, $0) } }, 8 * 2 * 28),
    ]
    for (name, shape, most) in shapes {
      let count = (shape.map { max($0.0, $0.1) }.max() ?? 0) + 1
      var net = Net(devices: (0..<count).map { coverage(of: $0, among: count) })
      for (a, b) in shape { net.connect(a, b) }
      pass(&net, from: 0, until: 20_000)
      for device in net.devices {
        #expect(device.words.count == count, "\(name)")
        #expect(
          keys.prefix(count).allSatisfy { key in
            key.id == device.device || device.covers([chain: 9], of: store, key.id)
          }, "\(name)")
      }
      #expect(Set(net.devices.map(\.digest)).count == 1, "\(name)")
      // Of a word one copy crosses each session of a tree; elsewhere two may meet on their way.
      let delivered = net.delivered
      #expect(delivered <= most, "\(name)")
      pass(&net, from: 20_000, until: 40_000)
      #expect(net.delivered == delivered, "\(name): nothing changed")
    }
  }

  @Test func `a session that is full gets its words later`() {
    var coverage = coverage(of: 0, among: 2)
    coverage.begin(session, with: keys[1].id, process: 5, isMember: true)
    func told(isOpen: Bool) -> Int {
      coverage.setTime(at: 0, jitter: 0)
      return coverage.pass(
        at: instant(1_000), isOpen: { _ in isOpen }, stores: [store], own: { _ in own(9) }
      ).tellings.count
    }
    #expect(told(isOpen: false) == 0)
    #expect(coverage.needsTime(at: 1_000))
    #expect(told(isOpen: true) == 1)
    #expect(!coverage.needsTime(at: 1_000))
    #expect(told(isOpen: true) == 0)
  }

  @Test func `a peer that lost words is sent all again, unless some are under way`() {
    var net = Net(devices: (0..<3).map { coverage(of: $0, among: 3) })
    net.connect(0, 1)
    net.connect(1, 2)
    net.lost = SessionID(rawValue: 1)
    pass(&net, from: 0, until: 5_000)
    net.lost = nil
    pass(&net, from: 5_000, until: 10_000)
    #expect(net.devices[0].words.count == 1)
    func have(from index: Int, to other: Int, at now: UInt64) {
      let digest = net.devices[index].digest
      let isSound = net.devices[other].hear([], digest: digest, on: session, at: now, with: nil)
      #expect(isSound)
    }
    let last = net.devices[1].peers[session]?.movedAt ?? 0
    have(from: 0, to: 1, at: last + Limits.wordQuietMilliseconds)
    pass(&net, from: 10_000, until: 11_000)
    #expect(net.devices[0].words.count == 1)
    have(from: 0, to: 1, at: 11_000)
    have(from: 1, to: 0, at: 11_000)
    pass(&net, from: 11_000, until: 12_000)
    #expect(net.devices.map(\.words.count) == [3, 3, 3])
    let delivered = net.delivered
    have(from: 0, to: 1, at: 20_000)
    pass(&net, from: 20_000, until: 21_000)
    #expect(net.delivered == delivered, "both keep the same")
  }

  @Test func `a process is not sent its own word`() {
    var coverage = coverage(of: 0, among: 2)
    #expect(hear([word(3, process: 5, number: 1)], &coverage))
    for (process, wanted) in [(5, [0]), (6, [0, 1])] as [(UInt64, [Int])] {
      let session = SessionID(rawValue: process)
      coverage.begin(session, with: keys[1].id, process: process, isMember: true)
      coverage.setTime(at: 0, jitter: 0)
      let told = coverage.pass(
        at: instant(1_000), isOpen: { $0 == session }, stores: [store], own: { _ in own(9) }
      ).tellings.flatMap(\.words).flatMap(\.said).map(\.device)
      #expect(Set(told) == Set(wanted.map { keys[$0].id.shortName }))
    }
  }
}
