import KithCrypto
import Testing

@testable import KithCore

struct ObjectTests {
  var fixture: CarrierFixture

  init() throws { fixture = try CarrierFixture() }

  @Test(arguments: [
    (1, 4_096), (4_096, 4_096), (4_097, 4_352), (10_000, 10_240), (1 << 20, 1 << 20),
    (1 << 20 + 1, 1 << 20 + 1 << 15),
  ])
  func `a size is padded to a common one`(size: Int, padded: Int) {
    #expect(SealedObject.paddedSize(size) == padded)
  }

  @Test func `padding adds at most an eighth`() {
    for size in stride(from: 4_096, to: 1 << 22, by: 997) {
      let padded = SealedObject.paddedSize(size)
      #expect(padded >= size && padded <= size + size / 8)
    }
  }

  @Test mutating func `members recognise a name, and a stranger makes none`() throws {
    let (name, keys) = (fixture.name(), fixture.carrierKeys)
    #expect(keys.made(name))
    #expect(ObjectName(name.description) == name)
    let others = CarrierKeys(recovery: fixture.second.boxPublicKey)
    #expect(others.place != keys.place)
    #expect(!keys.made(ObjectName(of: others, entropy: &fixture.entropy)))
    #expect(ObjectName(name.description.uppercased()) == nil)
    #expect(ObjectName("name") == nil)
  }

  @Test mutating func `a body comes back as it was put`() throws {
    let chain = fixture.chain(fixture.creator)
    var body = fixture.body(above: [chain: 1], through: [chain: 3], level: 7)
    body.pieces = [fixture.name(), fixture.name()].sorted()
    body.rosterDigest = fixture.roster.digest
    body.time = ClockReading(reading: .zero, isSynchronised: true)
    let decoded = try #require(
      ObjectBody.decode(body.encoded(), account: fixture.account, epoch: fixture.epoch.id))
    body.time = decoded.body.time
    #expect(decoded.body == body)
    #expect(decoded.content.isEmpty)
    body.level = UInt8(Limits.objectLevels + 1)
    #expect(
      ObjectBody.decode(body.encoded(), account: fixture.account, epoch: fixture.epoch.id) == nil)
  }

  @Test func `cut and altered bodies are refused or differ`() {
    let (account, epoch) = (fixture.account, fixture.epoch.id)
    let bytes = fixture.body(through: [fixture.chain(fixture.creator): 3]).encoded()
    for count in 0..<bytes.count {
      let cut = ObjectBody.decode(Array(bytes.prefix(count)), account: account, epoch: epoch)
      #expect(cut?.body.encoded() != bytes)
    }
    #expect(ObjectBody.decode([0xFF, 0x07], account: account, epoch: epoch) == nil)
  }

  @Test func `a sequence counts up to a header inside`() {
    let chain = fixture.chain(fixture.creator)
    let body = fixture.body(above: [chain: 2], through: [chain: 1_000])
    #expect(body.bounded(by: [], with: []).parts[0].have.vector == [chain: 2])
  }

  @Test(arguments: [(2, false), (3, false), (4, true)] as [(UInt64, Bool)])
  func `an object of this device shows a copy if it says more of its chain than was received`(
    through: UInt64, saysMore: Bool
  ) {
    let chain = fixture.chain(fixture.creator)
    let body = fixture.body(through: [chain: through, fixture.chain(fixture.second): 9])
    #expect(body.saysMore(of: chain) { _ in 3 } == saysMore)
  }

  @Test mutating func `an object opens for members, under its name, and unaltered`() throws {
    let name = fixture.name()
    let seal = SealedObject.Seal(
      name: name, account: fixture.account, carrierKeys: fixture.carrierKeys,
      keys: fixture.creator, epoch: fixture.epoch,
      nonces: (fixture.entropy.draw(), fixture.entropy.draw()))
    let sealed = SealedObject.seal(fixture.body(through: [:]).encoded(), seal)
    #expect(sealed.count == 4_096)
    func opener(_ epochs: [EpochKeys]) -> ObjectOpener {
      ObjectOpener(
        account: fixture.account, carrierKeys: fixture.carrierKeys, keys: fixture.second,
        epochs: epochs, entries: EntryOpener(roster: fixture.roster, keyring: fixture.keyring))
    }
    let member = opener(fixture.keyring.newestFirst)
    #expect(member.open(sealed, named: name).facts?.author == fixture.creator.id)
    #expect(member.open(sealed, named: fixture.name()).facts == nil)
    var altered = sealed
    altered[100] ^= 1
    #expect(member.open(altered, named: name).facts == nil)
    #expect(member.open(Array(sealed.dropLast()), named: name).facts == nil)
    guard case .foreign = opener([]).open(sealed, named: name).content else {
      throw BrokenFixture()
    }
    var message = WireMessage()
    message.batch.store = fixture.store.rawValue
    message.batch.changeSets = [try fixture.changeSet(1).wire]
    let full = SealedObject.seal(
      fixture.body(through: [:]).encoded(with: [message.encodedBytes()]), seal)
    guard case .opened(_, let content) = member.open(full, named: name).content,
      case .batch(let batch)? = content.first?.body,
      case .sound(let changeSet)? = batch.changeSets.first
    else { throw BrokenFixture() }
    #expect(changeSet.opened != nil, "the engine's lock is held otherwise")
    // A later version's may be of another form; under an earlier epoch a former member puts anything.
    let strange = SealedObject.seal([0xff], seal)
    guard case .foreign = member.open(strange, named: name).content,
      case .unreadable = opener([fixture.newest, fixture.epoch]).open(strange, named: name).content
    else { throw BrokenFixture() }
    // A former member knows the outer layer, and puts other boxes there.
    var outer = try #require(SealedObject.openOuter(sealed, with: fixture.carrierKeys))
    outer.boxes = [[UInt8](repeating: 1, count: SealedSecret.boxBytes)]
    let forged = fixture.carrierKeys.outer.seal(
      outer.epoch.bytes + [0, 1] + outer.boxes[0] + outer.inner, nonce: fixture.entropy.draw())
    #expect(member.open(forged, named: name).facts == nil)
  }
}

/// The objects that a device puts in one turn, without a carrier.
struct DepositTests {
  let fixture: CarrierFixture
  let mine: ChainID

  init() throws {
    fixture = try CarrierFixture()
    mine = fixture.chain(fixture.creator)
  }

  /// An author of stores with so many change sets. An object ends after `most` of them.
  func author(_ counts: [UInt64], most: Int = 9, _ reader: CarrierReader? = nil) -> ObjectAuthor {
    var logs: [StoreIdentifier: ChangeSetLog] = [:]
    for (store, count) in zip([fixture.store, TestWorld.store], counts) {
      var log = ChangeSetLog()
      for sequence in 1...count { log.insert(unsigned(sequence, of: mine)) }
      _ = log.cover(mine, through: count)
      logs[store] = log
    }
    return fixture.author(
      reader ?? fixture.reader([:], empty: [TestWorld.store]), logs: logs,
      objectBytes: most * unsigned(1, of: mine).weight)
  }

  /// A deposit of everything, with the records.
  func deposit(_ author: ObjectAuthor) throws -> Deposit {
    var all = author.reader
    for (store, log) in author.logs { all.stores[store]?.vector = log.vector }
    let planner = fixture.author(all, logs: author.logs)
    let plan = CarrierPlan([], [], planner, mayTell: true, isAsked: false)
    guard let plan else { throw BrokenFixture() }
    return Deposit(plan, author)
  }

  func next(_ deposit: inout Deposit, _ author: ObjectAuthor, seed: Int = 0) -> Deposit.Next {
    var (timeKeeper, entropy) = (author.reader.timeKeeper, SeededEntropy(seed: UInt64(seed)))
    return deposit.next(by: author, clock: &timeKeeper, entropy: &entropy)
  }

  func objects(_ deposit: Deposit, _ author: ObjectAuthor) -> [OutboundObject] {
    var (deposit, objects) = (deposit, [OutboundObject]())
    while case .put(let object) = next(&deposit, author, seed: objects.count) {
      objects.append(object)
    }
    return objects
  }

  /// The records are larger than an object may be here: they go last.
  @Test(
    arguments: [
      ([1, 2], 3, [[[1], [1, 2]], []]), ([1, 2], 2, [[[1]], [[1, 2]], []]),
      ([5], 2, [[[1, 2]], [[3, 4]], [[5]], []]),
    ] as [([UInt64], Int, [[[UInt64]]])])
  func `an object holds as many shares as fit, and a large share goes in pieces`(
    counts: [UInt64], most: Int, brought: [[[UInt64]]]
  ) throws {
    let author = author(counts, most: most)
    let objects = objects(try deposit(author), author)
    #expect(objects.map { $0.batches.map { $0.changeSets.map(\.sequence) } } == brought)
    let (bodies, last) = (objects.map(\.body), objects.count - 1)
    #expect(objects.indices.filter { !objects[$0].records.isEmpty } == [last])
    #expect(objects.indices.filter { !objects[$0].seal.boxes.isEmpty } == [last])
    #expect(bodies.indices.filter { bodies[$0].rosterDigest != nil } == [last])
    #expect(Set(bodies.map(\.level)).count == 1)
    let isLarge = counts == [5]
    #expect(bodies.map(\.isPiece) == bodies.indices.map { isLarge && $0 < 2 })
    if isLarge {
      #expect(bodies[2].pieces == objects[..<2].map(\.name).sorted())
    }
    for part in bodies.flatMap(\.parts) {
      #expect(part.have.vector[mine] != nil && part.have.digest != nil)
    }
  }

  @Test func `an object with records opens for each member and the recovery key`() throws {
    let author = author([1])
    let object = try #require(objects(try deposit(author), author).last)
    let sealed = SealedObject.seal(object.body.encoded(with: object.records), object.seal)
    func open(_ keys: DeviceKeys) -> OpenedObject.Content {
      ObjectOpener(
        account: fixture.account, carrierKeys: fixture.carrierKeys, keys: keys, epochs: [],
        entries: EntryOpener(roster: fixture.roster, keyring: fixture.keyring)
      ).open(sealed, named: object.name).content
    }
    for keys in [fixture.creator, fixture.second] {
      guard case .opened(let body, _) = open(keys) else { throw BrokenFixture() }
      #expect(body == object.body)
    }
    guard case .foreign = open(fixture.revoked) else { throw BrokenFixture() }
    // The recovery key alone leads to the keys, and opens the last box.
    let outer = try #require(SealedObject.openOuter(sealed, with: fixture.carrierKeys))
    #expect(outer.boxes.count == fixture.roster.sortedMembers.count + 1)
    let recovery = fixture.fixture.recovery
    #expect(CarrierKeys(recovery: recovery.boxPublicKey).place == fixture.carrierKeys.place)
    let epoch = EpochKeys.open(
      try #require(outer.boxes.last), of: outer.epoch, generation: 0, with: recovery.box)
    #expect(epoch?.id == fixture.epoch.id)
  }

  @Test func `only what was under way is noted as put`() throws {
    let author = author([1])
    var deposit = try deposit(author)
    guard case .put(let object) = next(&deposit, author) else { throw BrokenFixture() }
    let noted = [fixture.carrierKeys, fixture.carrierKeys].map { _ in
      deposit.stored(object.name, bytes: 5_000)
    }
    #expect(noted == [KnownObject(state: .applied(object.body, without: []), bytes: 5_000), nil])
  }

  /// It tells its author's whole vector, of which readers note no more either.
  @Test func `a piece is noted with what is in it`() throws {
    let author = author([5], most: 2)
    var deposit = try deposit(author)
    guard case .put(let piece) = next(&deposit, author) else { throw BrokenFixture() }
    #expect(piece.body.isPiece && piece.body.parts[0].have.vector == [mine: 5])
    let noted = deposit.stored(piece.name, bytes: 5_000)?.body
    #expect(noted?.parts[0].have.vector == [mine: 2])
  }

  @Test func `a deposit that would be another answer ends`() throws {
    var limits = Policy.standard
    limits.keys += 1
    let cases: [(String, CarrierReader, isStale: Bool)] = [
      ("nothing changed", fixture.reader([:]), false),
      ("another epoch", fixture.reader([:], epoch: fixture.newest), true),
      ("entries are withheld", fixture.reader([:], isWithholding: true), true),
      ("limits", fixture.reader([:], policy: limits), true),
    ]
    for (name, reader, isStale) in cases {
      var deposit = try deposit(author([1]))
      let outcome = next(&deposit, author([1], reader))
      let isEnded = if case .stale = outcome { true } else { false }
      #expect(isEnded == isStale, "\(name)")
    }
  }
}
