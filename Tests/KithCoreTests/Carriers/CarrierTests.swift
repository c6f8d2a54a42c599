import KithCrypto
import Testing

@testable import KithCore

/// The turn of a carrier, phase by phase and rule by rule, without a replica.
struct CarrierTests {
  let fixture: CarrierFixture
  let now: UInt64 = 10_000_000
  let mine: ChainID
  let theirs: ChainID

  init() throws {
    fixture = try CarrierFixture()
    (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
  }

  /// The creator, which covers its chain through 3.
  func reader(roster: Roster? = nil) -> CarrierReader {
    fixture.reader([mine: 3], at: now, roster: roster)
  }

  /// A carrier whose listing showed these objects.
  func listed(_ names: [ObjectName], _ known: [KnownObject]) -> Carrier {
    var carrier = Carrier()
    for (name, object) in zip(names, known) { carrier.objects[name] = object }
    carrier.begin()
    let listing = carrier.objects.known.mapValues(\.bytes)
    let isListed = carrier.listed(listing, fixture.carrierKeys, reader())
    #expect(isListed)
    return carrier
  }

  func names(_ count: Int) -> [ObjectName] {
    var fixture = fixture
    return (0..<count).map { _ in fixture.name() }.sorted()
  }

  func put(_ carrier: inout Carrier) -> OutboundObject? {
    var (timeKeeper, entropy) = (reader().timeKeeper, SeededEntropy(seed: 9))
    let next = carrier.nextPut(fixture.author(reader()), clock: &timeKeeper, entropy: &entropy)
    if case .put(let object) = next { return object } else { return nil }
  }

  @Test func `an answer counts only in its phase`() {
    let (name, reader) = (names(1)[0], reader())
    var last = name
    let answers: [(name: String, isTaken: (inout Carrier) -> Bool)] = [
      ("gets", { !$0.nextGets(reader).isEmpty }),
      ("got", { $0.awaits(name) && $0.got(name, reader, nil) }),
      ("takes", { if case .object = $0.nextApplicable(reader) { true } else { false } }),
      ("puts", { put(&$0) != nil }), ("stored", { $0.stored(last, bytes: 1) }),
      ("deleted", { $0.deleted() != nil }),
    ]
    let steps: [((inout Carrier) -> Void, taken: [String])] = [
      ({ $0.attach(shortestMilliseconds: 5_000, at: 0) }, []), ({ $0.begin() }, []),
      ({ _ = $0.listed([name: 4_096], fixture.carrierKeys, reader) }, ["gets"]),
      ({ _ = $0.nextGets(reader) }, ["got"]),
      ({ _ = $0.got(name, reader, .opened(fixture.body(through: [:]), [])) }, ["takes"]),
      ({ while case .object = $0.nextApplicable(reader) {} }, []),
      ({ $0.objects[name] = fixture.object(.unreadable(since: 0)) }, ["gets"]),
      ({ _ = $0.firstDeletions(reader) }, ["deleted"]),
      ({ $0.put([], fixture.author(reader)) }, ["puts"]),
      ({ last = put(&$0)?.name ?? last }, ["stored"]),
      ({ $0.end(reader, hasDrafts: false, since: nil) }, []),
      ({ $0.begin() }, []),
      ({ _ = $0.listed([name: 4_096], fixture.carrierKeys, reader) }, ["gets"]),
      ({ $0.fail(retryAfter: nil, at: now) }, []),
    ]
    var carrier = Carrier()
    for (index, step) in steps.enumerated() {
      step.0(&carrier)
      let taken = answers.filter { answer in
        var copy = carrier
        return answer.isTaken(&copy)
      }
      // The object is got once, unless it did not open.
      let wanted = index == 6 ? [] : step.taken
      #expect(taken.map(\.name) == wanted, "after step \(index)")
      #expect((carrier.dueAt != nil) == [0, 10, 13].contains(index), "after step \(index)")
    }
  }

  @Test func `an object is got once in a turn, if it was not read`() {
    let name = names(1)[0]
    let body = fixture.body(through: [:])
    let cases: [(KnownObject.State, isWanted: Bool)] = [
      (.unread, true), (.unreadable(since: now), true), (.foreign(isDue: true), true),
      (.applied(body, without: []), false),
    ]
    for (state, isWanted) in cases {
      var carrier = listed([name], [fixture.object(state)])
      let gets = (0..<2).map { _ in carrier.nextGets(reader()) }
      #expect(gets == [isWanted ? [name] : [], []], "\(state)")
    }
  }

  @Test func `an object that was not taken in whole is got again once something changed`() {
    let names = names(2)
    let body = fixture.body(through: [:])
    let states: [KnownObject.State] = [
      .foreign(isDue: false), .applied(body, without: [fixture.store]),
    ]
    // A new process reads them again, too.
    var carrier = listed(names, states.map { fixture.object($0) })
    #expect(carrier.nextGets(reader()) == names)
    for (name, state) in zip(names, states) { carrier.objects[name]?.state = state }
    func turn(_ reader: CarrierReader) -> [ObjectName] {
      carrier.begin()
      _ = carrier.listed(carrier.objects.known.mapValues(\.bytes), fixture.carrierKeys, reader)
      return carrier.nextGets(reader)
    }
    #expect(turn(reader()).isEmpty)
    #expect(turn(fixture.reader([mine: 3], at: now, refused: [theirs.device])) == names)
  }

  @Test func `a part that was left out for limits of a moment is taken in later`() {
    let name = names(1)[0]
    var policy = Policy.standard
    policy.keys -= 1
    let other = fixture.reader([mine: 3], at: now, policy: policy)
    var carrier = listed([name], [fixture.object()])
    _ = carrier.nextGets(reader())
    _ = carrier.got(name, reader(), .opened(fixture.body(through: [mine: 3]), []))
    _ = carrier.nextApplicable(other)
    guard case .part(_, let part, _, _) = carrier.nextApplicable(other) else {
      Issue.record("no part is ready")
      return
    }
    carrier.noteApplied(part, of: name, isWhole: false, other)
    _ = carrier.nextApplicable(other)
    #expect(carrier.waiting.isEmpty)
    carrier.begin()
    _ = carrier.listed(carrier.objects.known.mapValues(\.bytes), fixture.carrierKeys, reader())
    #expect(carrier.nextGets(reader()) == [name])
  }

  @Test func `a part that was left out of an object that waits is taken in once limits change`() {
    let name = names(1)[0]
    let other = StoreIdentifier("com.example.Notes")!
    var body = fixture.body(through: [mine: 3])
    body.parts.append(fixture.part(other, above: [theirs: 9], through: [theirs: 12]))
    var policy = Policy.standard
    policy.keys -= 1
    let before = fixture.reader([mine: 3], at: now, empty: [other], policy: policy)
    var carrier = Carrier()
    func turn(_ reader: CarrierReader) {
      carrier.begin()
      _ = carrier.listed([name: 100], fixture.carrierKeys, reader)
      if carrier.nextGets(reader) == [name] {
        _ = carrier.got(name, reader, .opened(body, []))
        _ = carrier.nextApplicable(reader)
      }
    }
    turn(before)
    guard case .part(_, let part, _, _) = carrier.nextApplicable(before) else {
      Issue.record("no part is ready")
      return
    }
    carrier.noteApplied(part, of: name, isWhole: false, before)
    let after = fixture.reader([mine: 3], at: now, empty: [other])
    turn(after)
    guard case .part(_, let again, _, _) = carrier.nextApplicable(after) else {
      Issue.record("the part is still left out")
      return
    }
    #expect(again == part)
  }

  /// It was cut after this device had read it.
  @Test func `an object that waits is got again if its size changed`() {
    let name = names(1)[0]
    var carrier = listed([name], [fixture.object()])
    _ = carrier.nextGets(reader())
    let body = fixture.body(above: [theirs: 9], through: [theirs: 12])
    _ = carrier.got(name, reader(), .opened(body, []))
    for difference in [0, 1] {
      carrier.begin()
      let listing = carrier.objects.known.mapValues { $0.bytes - difference }
      _ = carrier.listed(listing, fixture.carrierKeys, reader())
      #expect(carrier.nextGets(reader()) == (difference == 0 ? [] : [name]))
    }
  }

  @Test func `an object under an unknown epoch is got again in a turn that brings records`() {
    let names = names(2)
    var carrier = listed(names, names.map { _ in fixture.object() })
    #expect(carrier.nextGets(reader()) == names)
    for name in names { _ = carrier.got(name, reader(), .foreign) }
    #expect(carrier.nextGets(reader()).isEmpty)
    let other = fixture.fixture.roster(fixture.fixture.records)
    #expect(carrier.nextGets(reader(roster: other)) == names)
  }

  @Test(
    arguments: [
      (.unread, 1_025, 4_096, 1_024), (.unread, 5, 16 << 20, 4), (.unread, 1, 16 << 20 + 1, 0),
      (.unreadable(since: 0), 17, 4_096, 16), (.foreign(isDue: true), 17, 4_096, 16),
    ] as [(KnownObject.State, Int, Int, Int)])
  func `a turn gets so many objects, bytes, and doubtful objects`(
    state: KnownObject.State, count: Int, bytes: Int, gets: Int
  ) {
    let names = names(count)
    var carrier = listed(names, names.map { _ in fixture.object(state, bytes: bytes) })
    let asked = carrier.nextGets(reader())
    #expect(asked == Array(names.prefix(gets)))
  }

  /// The parts of the first object: one is ready, one waits.
  @Test func `each part of an object is taken in by itself, and the object counts with the last`() {
    let name = names(1)[0]
    var body = fixture.body(above: [theirs: 9], through: [theirs: 9])
    body.parts.append(fixture.part(TestWorld.store, through: [:]))
    body.parts.sort { $0.store < $1.store }
    var (carrier, reader) = (listed([name], [fixture.object()]), reader())
    _ = carrier.nextGets(reader)
    _ = carrier.got(name, reader, .opened(body, []))
    guard case .object = carrier.nextApplicable(reader) else { return #expect(Bool(false)) }
    guard case .part(_, let part, _, _) = carrier.nextApplicable(reader) else {
      return #expect(Bool(false))
    }
    #expect(part.store == TestWorld.store)
    carrier.noteApplied(part, of: name, isWhole: true, reader)
    if case .none = carrier.nextApplicable(reader) {} else { #expect(Bool(false)) }
    #expect(carrier.nextGets(reader).isEmpty && carrier.waiting[name] != nil)
    #expect(carrier.objects[name]?.state == .unread)
    reader.stores[fixture.store]?.vector[theirs] = 9
    guard case .part(_, let last, _, _) = carrier.nextApplicable(reader) else {
      return #expect(Bool(false))
    }
    carrier.noteApplied(last, of: name, isWhole: false, reader)
    if case .none = carrier.nextApplicable(reader) {} else { #expect(Bool(false)) }
    #expect(carrier.objects[name]?.state == .applied(body, without: [fixture.store]))
  }

  @Test func `an object waits for its pieces, and lacks what they lack`() {
    let names = names(2)
    var (head, piece) = (fixture.body(through: [:]), fixture.body(through: [:]))
    (head.pieces, piece.isPiece) = ([names[1]], true)
    for (known, isComplete) in [
      (fixture.object(), nil), (fixture.known(fixture.body(through: [:])), nil),
      (fixture.known(piece), true), (fixture.known(piece, without: [fixture.store]), false),
    ] as [(KnownObject, Bool?)] {
      var carrier = listed(names, [fixture.object(), fixture.object()])
      _ = carrier.nextGets(reader())
      _ = carrier.got(names[0], reader(), .opened(head, []))
      carrier.objects[names[1]] = known
      _ = carrier.nextApplicable(reader())
      var found: Bool?
      if case .part(_, _, _, let isComplete) = carrier.nextApplicable(reader()) {
        found = isComplete
      }
      #expect(found == isComplete)
    }
  }

  @Test func `objects are taken in by clock, noted, or wait`() {
    let (names, reader) = (names(8), reader())
    func body(by keys: DeviceKeys? = nil, isAbove: Bool = true, clock: UInt64 = 1) -> ObjectBody {
      fixture.body(
        by: keys, above: isAbove ? [theirs: 9] : [:], through: [theirs: 12], clock: clock)
    }
    let bodies = [
      body(isAbove: false, clock: 9), body(isAbove: false, clock: 8),
      body(by: fixture.revoked), body(), body(by: deviceKeys(4)),
    ]
    let known = names.map { _ in fixture.object() }
    var carrier = listed(names, known.dropLast() + [fixture.object(.unreadable(since: 5))])
    _ = carrier.nextGets(reader)
    let contents: [OpenedObject.Content?] =
      bodies.map { .opened($0, []) } + [nil, .unreadable, .unreadable]
    for (name, content) in zip(names, contents) { _ = carrier.got(name, reader, content) }
    var taken: [ObjectName] = []
    while true {
      let next = carrier.nextApplicable(reader)
      if case .none = next { break }
      guard case .part(let name, let part, _, _) = next else { continue }
      taken.append(name)
      carrier.noteApplied(part, of: name, isWhole: true, reader)
    }
    #expect(taken == [names[1], names[0]])
    _ = carrier.nextGets(reader)
    // No header is inside, so a sequence counts up to what the object is above.
    let bounded = bodies.map { $0.bounded(by: [], with: []) }
    let void = ObjectBody(by: bodies[2].author, at: bodies[2].clock, under: bodies[2].epoch)
    let states = names.map { carrier.objects[$0]?.state }
    #expect(
      states == [
        .applied(bounded[0], without: []), .applied(bounded[1], without: []),
        .applied(void, without: []), .unread, .foreign(isDue: false), .unread,
        .unreadable(since: now), .unreadable(since: 5),
      ])
    #expect(Array(carrier.waiting.keys) == [names[3]])
    #expect(names.filter { carrier.objects[$0]?.missingSince == now } == [names[5]])
  }

  @Test(arguments: ["goes on", "fails", "begins anew"])
  func `only so many bytes of objects wait`(turn: String) {
    let names = names(5)
    var carrier = listed(names, names.map { _ in fixture.object(bytes: 5 << 20) })
    #expect(carrier.nextGets(reader()).count == 5)
    let body = fixture.body(above: [theirs: 9], through: [theirs: 12])
    for name in names { _ = carrier.got(name, reader(), .opened(body, [])) }
    _ = carrier.nextApplicable(reader())
    switch turn {
    case "fails": carrier.fail(retryAfter: nil, at: now)
    case "begins anew": carrier.attach(shortestMilliseconds: 5_000, at: now)
    default: _ = carrier.nextGets(reader())
    }
    #expect(carrier.waiting.keys.sorted() == Array(names[..<3]))
  }

  /// They are kept and stored, and a member can put any number. Of a body only what may count is
  /// noted.
  @Test func `only so many bytes of bodies are noted`() {
    let refused = deviceKeys(5).id
    let above = (0..<65_536 as Range<UInt64>).map {
      (ChainID(device: refused, incarnation: Incarnation(rawValue: $0)), UInt64(1))
    }
    let reader = fixture.reader([mine: 3], at: now, refused: [refused])
    let names = names(9)
    var carrier = listed(names, names.map { _ in fixture.object() })
    _ = carrier.nextGets(reader)
    let body = fixture.body(above: Dictionary(above) { old, _ in old }, through: [:])
    for name in names { _ = carrier.got(name, reader, .opened(body, [])) }
    apply(&carrier, reader)
    let fitting = Limits.objectBodyBytes / body.sizeBound
    for (index, name) in names.enumerated() {
      #expect((carrier.objects[name]?.body != nil) == (index < fitting))
    }
    #expect(carrier.objects[names[8]]?.state == .foreign(isDue: false))
    // One that goes makes room.
    for name in names { carrier.objects[name] = nil }
    #expect(carrier.objects.bodyBytes == 0)
  }

  @Test func `words of strangers are noted, and nothing that a revoked device put`() throws {
    let names = names(2)
    var carrier = listed(names, names.map { _ in fixture.object() })
    let content = WordContent([
      fixture.store: WordContent.Store(digest: WordContent.digest(of: [:]))
    ])
    let words = [fixture.second, deviceKeys(4)].map {
      Word(
        content, version: Word.Version(number: 1, process: 5), account: fixture.account, keys: $0)
    }
    var (sound, void) = (
      fixture.body(through: [:]), fixture.body(by: fixture.revoked, through: [:])
    )
    (sound.words, void.words) = (WordGroup.groups(of: words), WordGroup.groups(of: words))
    _ = carrier.nextGets(reader())
    for (name, body) in zip(names, [sound, void]) {
      _ = carrier.got(name, reader(), .opened(body, []))
    }
    apply(&carrier, reader())
    let noted = try names.map { try #require(carrier.objects[$0]?.body) }
    #expect(Set(noted[0].wordVersions.keys) == Set(words.map(\.device.shortName)))
    #expect(noted[1].words.isEmpty && noted[1].parts.isEmpty)
  }

  private func apply(_ carrier: inout Carrier, _ reader: CarrierReader) {
    while true {
      switch carrier.nextApplicable(reader) {
      case .none: return
      case .object: break
      case .part(let name, let part, _, _):
        carrier.noteApplied(part, of: name, isWhole: true, reader)
      }
    }
  }

  /// A full carrier takes nothing before something is deleted. But one that refuses to delete takes
  /// what is put.
  @Test func `deletions come first, unless the last turn's failed`() {
    let (name, reader) = (names(1)[0], reader())
    var carrier = listed([name], [fixture.object(.unreadable(since: 0))])
    #expect(carrier.lastDeletions(reader).isEmpty)
    #expect(carrier.firstDeletions(reader) == [name])
    carrier.fail(retryAfter: nil, at: now)
    #expect(carrier.firstDeletions(reader).isEmpty)
    #expect(carrier.lastDeletions(reader) == [name])
    #expect(carrier.deleted() == true)
    carrier.objects[name] = fixture.object(.unreadable(since: 0))
    #expect(carrier.firstDeletions(reader) == [name])
    #expect(carrier.deleted() == false)
  }
}
