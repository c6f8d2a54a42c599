import KithCrypto
import Testing

@testable import KithCore

struct CarrierObjectsTests {
  var fixture: CarrierFixture
  let hour: UInt64 = 3_600_000
  let start: UInt64 = 10_000_000
  let mine: ChainID
  let theirs: ChainID

  init() throws {
    fixture = try CarrierFixture()
    (mine, theirs) = (fixture.chain(fixture.creator), fixture.chain(fixture.second))
  }

  func names(_ count: Int) -> [ObjectName] {
    var fixture = fixture
    return (0..<count).map { _ in fixture.name() }
  }

  func objects(_ bodies: [ObjectBody]) -> CarrierObjects {
    var objects = CarrierObjects()
    for (name, body) in zip(names(bodies.count), bodies) { objects[name] = fixture.known(body) }
    return objects
  }

  func reached(_ bodies: [ObjectBody]) -> [ChainID: UInt64] {
    let reader = fixture.reader([:])
    return Brought(by: objects(bodies).counting(for: reader), reader).vectors[fixture.store] ?? [:]
  }

  // MARK: Counting

  @Test func `objects are reached from an empty vector`() {
    let first = fixture.body(through: [mine: 2], clock: 1)
    let second = fixture.body(above: [mine: 2], through: [mine: 4, theirs: 1], clock: 2)
    let unreachable = fixture.body(above: [theirs: 9], through: [theirs: 12], clock: 3)
    #expect(reached([first]) == [mine: 2])
    #expect(reached([second]) == [:])
    #expect(reached([second, unreachable, first]) == [mine: 4, theirs: 1])
  }

  @Test func `each store of an object is reached by itself`() {
    let other = StoreIdentifier("com.example.Notes")!
    var body = fixture.body(above: [mine: 1], through: [mine: 2])
    body.parts.append(fixture.part(other, through: [theirs: 3]))
    let reader = fixture.reader([:], empty: [other])
    let brought = Brought(by: objects([body]).counting(for: reader), reader)
    #expect(brought.vectors == [other: [theirs: 3]])
  }

  @Test func `an object counts if a member put all of it under the newest epoch`() {
    let reader = fixture.reader([:])
    let whole = fixture.body(through: [mine: 2])
    var (limits, incomplete) = (whole, whole)
    limits.parts[0].have.policy.keys -= 1
    incomplete.pieces = [names(9)[8]]
    let gone = fixture.chain(fixture.revoked)
    let cases: [(String, ObjectBody, counts: Bool, parts: Int)] = [
      ("whole", whole, true, 1), ("other limits", limits, true, 0),
      ("its author did not know a revocation", fixture.body(through: [gone: 1]), true, 0),
      ("an older epoch", fixture.body(through: [mine: 2], under: fixture.newest), false, 0),
      ("a revoked author", fixture.body(by: fixture.revoked, through: [mine: 2]), false, 0),
      ("a stranger", fixture.body(by: deviceKeys(4), through: [mine: 2]), false, 0),
      ("a piece is lacking", incomplete, false, 0),
    ]
    for (name, body, counts, parts) in cases {
      let counting = objects([body]).counting(for: reader)
      #expect(counting.count == (counts ? 1 : 0), "\(name)")
      #expect(counting.first?.parts.count ?? 0 == parts, "\(name)")
    }
    var partly = CarrierObjects()
    partly[names(1)[0]] = fixture.known(whole, without: [fixture.store])
    #expect(partly.counting(for: reader).map(\.parts.count) == [0])
  }

  @Test func `an object with pieces counts while they are there`() {
    var (head, piece) = (fixture.body(through: [mine: 2]), fixture.body(through: [mine: 1]))
    let names = names(2)
    (head.pieces, piece.isPiece) = ([names[1]], true)
    var objects = objects([head, piece])
    let reader = fixture.reader([:], at: start)
    #expect(objects.counting(for: reader, .listed).count == 1)
    objects.compare(with: [names[0]: 4_096], reader)
    #expect(objects.counting(for: reader, .listed).isEmpty)
    #expect(objects.counting(for: reader).count == 1)
  }

  @Test func `objects come in one order, whatever the dictionary's`() {
    var bodies = (0..<20 as Range<UInt8>).map { fixture.body(through: [:], level: $0 % 3) }
    for index in bodies.indices { bodies[index].clock = HybridTime(rawValue: UInt64(index % 5)) }
    let ranks = objects(bodies).counting(for: fixture.reader([:])).map(\.rank)
    #expect(ranks == ranks.sorted { $1 < $0 } && ranks.count == 20)
  }

  // MARK: Listings

  @Test mutating func `an object counts until listings lacked it for an hour`() {
    let name = fixture.name()
    var objects = CarrierObjects()
    objects[name] = fixture.known(fixture.body(through: [mine: 1]))
    objects.compare(with: [name: 4_096], fixture.reader([:], at: start))
    for (after, isThere) in [(UInt64(1), true), (hour, true), (hour + 1, false)] {
      objects.compare(with: [:], fixture.reader([:], at: start + after))
      #expect((objects[name] != nil) == isThere)
    }
    #expect(objects.vanished == 1)
  }

  @Test func `an object whose data others bring did not vanish`() {
    var objects = objects([fixture.body(through: [mine: 1]), fixture.body(through: [mine: 2])])
    let listing = [names(2)[1]: 4_096]
    for after in [0, hour] as [UInt64] {
      objects.compare(with: listing, fixture.reader([:], at: start + after))
    }
    #expect(objects.known.count == 1 && objects.vanished == 0)
  }

  @Test mutating func `after the clock was set back, an hour is an hour`() {
    var objects = CarrierObjects()
    let name = fixture.name()
    objects[name] = fixture.known(fixture.body(through: [:]))
    objects.compare(with: [:], fixture.reader([:], at: 90_000_000))
    objects.compare(with: [:], fixture.reader([:], at: start))
    #expect(objects[name]?.missingSince == start)
    objects.compare(with: [:], fixture.reader([:], at: start + hour))
    #expect(objects[name] == nil)
  }

  /// A former member still makes names, and may show others in each listing of a shared folder.
  @Test(
    arguments: [.unread, .unreadable(since: 5), .foreign(isDue: false)] as [KnownObject.State])
  mutating func `an object that brought nothing is forgotten with its listing`(
    state: KnownObject.State
  ) {
    let name = fixture.name()
    var objects = CarrierObjects()
    objects[name] = fixture.object(state)
    objects.compare(with: [name: 4_097], fixture.reader([:], at: start))
    #expect(objects[name]?.bytes == 4_097)
    objects.compare(with: [:], fixture.reader([:], at: start))
    #expect(objects[name] == nil)
  }

  @Test mutating func `names of strangers are not noted`() {
    var objects = CarrierObjects()
    let (name, strange) = (fixture.name(), ObjectName(Digest128 { _ in }))
    objects.noteListed([name: 4_096, strange: 1], fixture.carrierKeys, fixture.reader([:]))
    #expect(Array(objects.known.keys) == [name])
  }

  // MARK: Deleting

  /// Object 0 brings sequence 2 and tells this device's state; the others are beside it.
  @Test func `an object is deleted if later ones bring all of it`() {
    let (digest, newest, roster) = (CarrierFixture.digest, fixture.newest, fixture.roster.digest)
    func body(
      _ through: UInt64, above: UInt64 = 0, level: UInt8 = 1, tells: Bool = false,
      records: Digest256? = nil, by keys: DeviceKeys? = nil, under epoch: EpochKeys? = nil
    ) -> ObjectBody {
      var body = fixture.body(
        by: keys, above: above > 0 ? [mine: above] : [:], through: [mine: through], level: level,
        digest: tells ? digest : nil, under: epoch)
      body.rosterDigest = records
      return body
    }
    var (own, limits) = (body(2, level: 0), body(2, level: 0, by: fixture.second))
    own.parts[0].have.policy.keys -= 1
    limits.parts[0].have.policy.keys -= 1
    let odd = fixture.body(through: [mine: 3], level: 9, digest: Blake2b.digest256([2]))
    let old = fixture.epoch
    let cases: [(String, ObjectBody, [ObjectBody], EpochKeys, isDeleted: Bool)] = [
      ("a later one brings it", body(2, level: 0), [body(2)], old, true),
      ("an earlier one brings it", body(2, level: 2), [body(2)], old, false),
      ("a later one brings less", body(2, level: 0), [body(1)], old, false),
      ("two later ones bring it", body(2, level: 0), [body(2, above: 1), body(1)], old, true),
      ("the later one is above it", body(1, level: 0), [body(2, above: 1)], old, false),
      ("it tells the state", body(3, level: 0, tells: true), [body(3)], old, false),
      (
        "a later one tells the state", body(3, level: 0, tells: true), [body(3, tells: true)], old,
        true
      ),
      (
        "only one above nothing is from nothing", body(3, level: 0, tells: true),
        [body(3), body(3, above: 3, tells: true)], old, false
      ),
      (
        "an odd one is there", body(3, level: 0, tells: true), [body(3, tells: true), odd], old,
        false
      ),
      ("it has the records", body(2, level: 0, records: roster), [body(2)], old, false),
      (
        "a later one has the records", body(2, level: 0, records: roster),
        [body(2, records: roster)], old, true
      ),
      ("its author has other limits", limits, [body(2)], old, false),
      ("this device had other limits", own, [body(2)], old, true),
      ("this device had other limits, and more", own, [body(1)], old, false),
      ("a revoked device's", body(9, by: fixture.revoked), [], old, true),
      ("an older epoch's", body(2, level: 9), [body(2, under: newest)], newest, false),
      (
        "an older epoch's, and boxes are there", body(2, level: 9),
        [body(2, records: roster, under: newest)], newest, true
      ),
    ]
    for (name, body, others, epoch, isDeleted) in cases {
      let objects = objects([body] + others)
      let deletable = objects.deletable(by: fixture.reader([mine: 3], at: start, epoch: epoch), [])
      #expect(deletable.contains(names(1)[0]) == isDeleted, "\(name)")
    }
  }

  /// Others may keep what this device refuses, and need to hear the state with it.
  @Test func `an object with a refused author's data is deleted if it is covered, and brought`() {
    let refusing = fixture.reader(
      [mine: 1, theirs: 1], at: start, refused: [theirs.device])
    let cases: [([ChainID: UInt64], [ChainID: UInt64], Bool)] = [
      ([mine: 1, theirs: 1], [mine: 1], false),
      ([mine: 1, theirs: 1], [mine: 1, theirs: 1], true),
      ([mine: 1, theirs: 2], [mine: 1, theirs: 2], false),
    ]
    for (first, second, isDeleted) in cases {
      let objects = objects([
        fixture.body(through: first), fixture.body(through: second, level: 1),
      ])
      #expect(objects.deletable(by: refusing, []) == (isDeleted ? [names(1)[0]] : []))
    }
  }

  /// Each would be the other's reason.
  @Test func `of two objects that bring the same, one stays`() {
    let bodies = (0..<4).map { _ in fixture.body(through: [mine: 3]) }
    let deletable = objects(bodies).deletable(by: fixture.reader([mine: 3], at: start), [])
    #expect(deletable == Array(names(4).sorted()[..<3]))
  }

  @Test func `a later object is a reason an hour after it was listed, while it is listed`() {
    let names = names(2)
    for (seen, isThere, isDeleted) in [
      (start - hour, true, true), (start - hour + 1, true, false), (start - hour, false, false),
    ] {
      var objects = objects([fixture.body(through: [mine: 1])])
      objects[names[1]] = fixture.known(
        fixture.body(through: [mine: 1], level: 1), seenSince: seen)
      if !isThere { objects[names[1]]?.missingSince = start }
      let deletable = objects.deletable(by: fixture.reader([mine: 1], at: start), [])
      #expect(deletable == (isDeleted ? [names[0]] : []))
    }
  }

  @Test func `a piece is deleted if no object needs it`() {
    let (reader, day) = (fixture.reader([:], at: 200_000_000), Limits.carrierDayMilliseconds)
    let name = names(1)[0]
    var head = fixture.body(through: [mine: 1])
    head.pieces = [name]
    for (isLoose, age, isNeeded, isDeleted) in [
      (true, hour - 1, false, false), (true, hour, false, true), (true, day, true, false),
      (false, day - 1, false, false), (false, day, false, true), (false, day, true, false),
    ] {
      var piece = fixture.body(by: fixture.creator, through: [mine: 1])
      piece.isPiece = true
      var objects = CarrierObjects()
      objects[name] = fixture.known(piece, seenSince: 200_000_000 - age)
      let deletable = objects.deletable(
        by: reader, isNeeded ? [head] : [], loose: isLoose ? [name] : [])
      #expect(deletable == (isDeleted ? [name] : []))
    }
  }

  @Test mutating func `an object that does not open is deleted an hour later`() {
    var objects = CarrierObjects()
    let name = fixture.name()
    objects[name] = fixture.object(.unreadable(since: start))
    #expect(objects.deletable(by: fixture.reader([:], at: start + hour - 1), []).isEmpty)
    #expect(objects.deletable(by: fixture.reader([:], at: start + hour), []) == [name])
    objects[name] = fixture.object(.foreign(isDue: false))
    #expect(objects.deletable(by: fixture.reader([:], at: start + hour), []).isEmpty)
  }

  // MARK: Rows

  @Test mutating func `a known object is restored from its row`() {
    let body = fixture.body(through: [mine: 1], level: 3)
    var object = fixture.known(body)
    object.missingSince = 5
    let again = KnownObject(decoding: object.encoded(), account: fixture.account)
    #expect(again?.body?.parts == body.parts && again?.body?.level == 3)
    #expect(again?.missingSince == 5 && again?.seenSince == nil)
    #expect(KnownObject(decoding: [1, 2, 3], account: fixture.account) == nil)
  }

  @Test func `an object that was not taken in whole is read again after a start`() {
    let partly = fixture.known(fixture.body(through: [mine: 1]), without: [fixture.store])
    let states = [partly.state, .foreign(isDue: false), .unreadable(since: 7)].map {
      KnownObject(decoding: fixture.object($0).encoded(), account: fixture.account)?.state
    }
    #expect(states == [.unread, .foreign(isDue: true), .unreadable(since: 7)])
  }
}
