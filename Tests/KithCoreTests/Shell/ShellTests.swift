import KithCrypto
import Testing

@testable import KithCore

/// A shell over a replica of one device, with a disk that fails when told to. The test is its driver.
struct ShellFixture {
  var shell: Shell
  let storage: MemoryStorage
  var now = Instant(wallMilliseconds: TestWorld.origin, monotonicMilliseconds: 1_000)
  private let account: AccountID
  private let keys: DeviceKeys
  private var lastWrite: UInt64 = 0

  static let full = StorageError(code: .diskFull, path: "/test", message: "on demand")
  static let other = StorageError(code: .readOnly, path: "/test", message: "on demand")

  init() throws {
    let device = try TestWorld(devices: 1, seed: 5).devices[0]
    account = device.replica.account
    keys = device.keys
    storage = MemoryStorage(device.disk)
    shell = Shell(try Self.replica(account, keys, storage))
    try take(.start(isCopy: false))
    try take(.open(TestWorld.store, .standard))
    drain()
  }

  private static func replica(
    _ account: AccountID, _ keys: DeviceKeys, _ storage: MemoryStorage
  ) throws -> Replica {
    try Replica(
      account: account, keys: keys, snapshot: storage.load(),
      process: ProcessID(Digest128 { _ in }), entropy: SeededEntropy(seed: 1))
  }

  func replica() throws -> Replica { try Self.replica(account, keys, storage) }

  mutating func advance(_ milliseconds: UInt64) {
    now.wallMilliseconds += milliseconds
    now.monotonicMilliseconds += milliseconds
  }

  /// Hands in an input that must be taken.
  @discardableResult
  mutating func take(_ input: Input, gathers: Bool = false) throws -> [Effect] {
    guard case .handled(let effects) = shell.take(input, gathers: gathers, at: now) else {
      throw Self.full
    }
    return effects
  }

  /// Writes a value and waits for its fate.
  mutating func write(
    _ key: String, _ value: PropertyListValue = 1, gathers: Bool = false
  ) throws -> WriteID {
    lastWrite += 1
    let write = WriteID(rawValue: lastWrite)
    try take(.write(write, TestWorld.store, [set(key, value)]), gathers: gathers)
    shell.expect(write)
    return write
  }

  /// Takes the next piece of work, after the flush that it wants.
  mutating func next() -> Shell.Work {
    if shell.wantsFlush { _ = shell.take(.flush, at: now) }
    return shell.next(at: now)
  }

  mutating func nextRound() throws -> Round {
    guard case .round(let round) = next() else { throw Self.full }
    return round
  }

  /// Does all work that can be done now.
  mutating func drain() {
    while true {
      switch next() {
      case .idle, .busy: return
      case .round(let round):
        do throws(StorageError) {
          try storage.commit(round.mutations)
          _ = shell.committed()
        } catch {
          _ = shell.failed(error, at: now)
        }
      case .reload: _ = try? reopen()
      }
    }
  }

  mutating func reopen() throws -> Shell.Aftermath {
    shell.reopen(try replica(), isCopy: storage.isCopy, at: now)
  }

  /// Lets a commit fail, and the replica be made anew.
  mutating func fail(_ error: StorageError = full) throws {
    _ = try write("failing \(lastWrite)")
    _ = try nextRound()
    _ = shell.failed(error, at: now)
    guard case .reload = next() else { throw Self.full }
    _ = try reopen()
  }

  var shown: [Key: EncodedValue] { shell.replica.view(of: TestWorld.store) }
}

@Suite struct ShellTests {
  private func isSuccess(_ fate: Result<Void, Shell.Unavailable>?) -> Bool {
    if case .success = fate { true } else { false }
  }

  private func failure(_ fate: Result<Void, Shell.Unavailable>?) -> Shell.Unavailable? {
    if case .failure(let error) = fate { error } else { nil }
  }

  // MARK: Rounds

  @Test func `a write shows at once, is one round, and is settled by its end`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a")
    #expect(fixture.shown[Key("a")] != nil)
    #expect(fixture.shell.hasWork && fixture.shell.wantsFlush)
    guard case .idle = fixture.shell.next(at: fixture.now) else { throw ShellFixture.full }
    let round = try fixture.nextRound()
    #expect(round.early.isEmpty)
    #expect(round.mutations.contains { if case .putDraft = $0 { true } else { false } })
    #expect(fixture.shell.isBusy && fixture.shell.isOpen(write))
    guard case .busy = fixture.shell.next(at: fixture.now) else { throw ShellFixture.full }
    #expect(fixture.shell.takeFate(of: write) == nil)
    let aftermath = fixture.shell.committed()
    #expect(aftermath.settled == [write])
    #expect(aftermath.turn == nil)
    #expect(isSuccess(fixture.shell.takeFate(of: write)))
    #expect(fixture.shell.takeFate(of: write) == nil, "a fate is told once")
    #expect(!fixture.shell.hasWork && !fixture.shell.isBusy)
  }

  @Test func `writes that come during a round are the next one`() throws {
    var fixture = try ShellFixture()
    let first = try fixture.write("a")
    _ = try fixture.nextRound()
    let others = [try fixture.write("b"), try fixture.write("c")]
    #expect(!fixture.shell.wantsFlush && fixture.shell.hasWork)
    #expect(fixture.shell.committed().settled == [first])
    _ = try fixture.nextRound()
    #expect(fixture.shell.committed().settled == others)
  }

  @Test func `a write that nobody expects is settled for nobody`() throws {
    var fixture = try ShellFixture()
    try fixture.take(.write(WriteID(rawValue: 9), TestWorld.store, [set("a", 1)]))
    _ = try fixture.nextRound()
    #expect(fixture.shell.committed().settled == [])
  }

  /// The place of the one commit among effects.
  @Test(arguments: [
    ("s", 1, 0), ("p", 0, 1), ("sp", 1, 1), ("ps", 0, 2), ("spsp", 1, 3), ("pp", 0, 2),
  ])
  func `a round is cut before its first commit`(effects: String, early: Int, late: Int) {
    let session = SessionID(rawValue: 1)
    let round = Round(
      effects.map { $0 == "p" ? .persist([.setClock(.zero)]) : .send(session, [1, 2]) })
    #expect(round.early.count == early)
    #expect(round.late.count == late)
    #expect(round.mutations.count == effects.count { $0 == "p" })
    let clock = effects.count { $0 == "p" } * Limits.overheadBytes
    #expect(
      round.weight == effects.count * Limits.overheadBytes + 2 * effects.count { $0 == "s" } + clock
    )
  }

  /// An effect that weighed nothing could wait by the hundred thousand. The switches of `weight` name
  /// every case.
  @Test func `effects that are no messages weighed nothing`() throws {
    let (session, write) = (SessionID(rawValue: 1), WriteID(rawValue: 1))
    let (device, carrier) = (deviceKeys(1).id, CarrierID(Digest128 { _ in }))
    let name = ObjectName(Digest128 { _ in })
    let store = TestWorld.store
    let effects: [Effect] = [
      .persist([]), .send(session, []), .carrier(carrier, .list), .carrier(carrier, .get([name])),
      .carrier(carrier, .delete([name])), .carrier(carrier, .rest),
      .sendStored(session, StoredBatch(store: store, answers: 0, isEverything: false)),
      .awaitRoom(session), .promote(session), .close(session, .silent), .accepted(write),
      .refused(write, .revoked), .refusedStore(store, .tooManyStores(limit: 1)),
      .refusedMembership(.ownDevice), .durable(write),
      .view(ViewChange(store: store, reason: nil, changes: [])), .pulledAll(session), .progress,
      .addresses([:]), .leftBehind([]), .wake(atMonotonicMilliseconds: 1), .report(.newIncarnation),
    ]
    for effect in effects { #expect(effect.weight >= Limits.overheadBytes, "\(effect)") }
    let told = Effect.addresses([device: ["192.0.2.1:1", "192.0.2.2:1"]])
    #expect(told.weight > 3 * Limits.overheadBytes)
    let stored = Mutation.setAddresses(device, ["192.0.2.1:1", "192.0.2.2:1"])
    #expect(Effect.persist([stored, .setClock(.zero)]).weight > 5 * Limits.overheadBytes)
  }

  // MARK: Gathering

  @Test func `writes that gather wait for the time, and for nothing else`() throws {
    var fixture = try ShellFixture()
    let tick = fixture.shell.wakesAtMilliseconds
    for key in ["a", "b"] {
      _ = try fixture.write(key, gathers: true)
      fixture.advance(5)
    }
    let end = 1_000 + Shell.gatheringMilliseconds
    #expect(fixture.shell.wakesAtMilliseconds == min(end, tick ?? .max))
    #expect(!fixture.shell.hasWork && !fixture.shell.wantsFlush)
    _ = fixture.shell.wake(at: fixture.now)
    try fixture.take(.tick)
    guard case .idle = fixture.next() else { throw ShellFixture.full }
    fixture.now.monotonicMilliseconds = end
    _ = fixture.shell.wake(at: fixture.now)
    _ = try fixture.nextRound()
    #expect(fixture.shell.committed().settled.count == 2)
  }

  @Test func `gathering ends for a write that does not gather, a mark, and closing`() throws {
    let ends: [(inout ShellFixture) throws -> Void] = [
      { _ = try $0.write("b") },
      { _ = $0.shell.mark(WriteID(rawValue: 100)) },
      { $0.shell.close() },
      { $0.shell.endGathering() },
    ]
    for end in ends {
      var fixture = try ShellFixture()
      _ = try fixture.write("a", gathers: true)
      try end(&fixture)
      #expect(fixture.shell.wantsFlush)
    }
  }

  @Test func `a write does not gather behind one that waits for a commit`() throws {
    var fixture = try ShellFixture()
    _ = try fixture.write("a")
    _ = try fixture.write("b", gathers: true)
    #expect(fixture.shell.wantsFlush)
  }

  // MARK: Marks

  @Test func `a mark is settled after all that was taken before`() throws {
    var fixture = try ShellFixture()
    let mark = WriteID(rawValue: 100)
    guard case .nothingWaits = fixture.shell.mark(mark) else { throw ShellFixture.full }
    _ = try fixture.write("a")
    _ = try fixture.nextRound()
    // The commit under way is not durable yet.
    guard case .queued = fixture.shell.mark(mark) else { throw ShellFixture.full }
    let second = try fixture.write("b")
    #expect(!fixture.shell.committed().settled.contains(mark))
    let round = try fixture.nextRound()
    #expect(!round.mutations.isEmpty)
    #expect(Set(fixture.shell.committed().settled) == [mark, second])
    try fixture.fail()
    guard case .refused(ShellFixture.full) = fixture.shell.mark(mark) else {
      throw ShellFixture.full
    }
  }

  // MARK: Failure

  @Test func `a failed commit undoes what was shown, and tells the programs then`() throws {
    var fixture = try ShellFixture()
    _ = try fixture.write("a", "old")
    fixture.drain()
    let before = fixture.shown
    let lost = try fixture.write("a", "new")
    let new = try fixture.write("b")
    _ = try fixture.nextRound()
    let failed = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    #expect(failed.turn == .failed)
    #expect(failed.settled == [] && fixture.shell.isOpen(lost), "not while the lost value shows")
    guard case .reload = fixture.next() else { throw ShellFixture.full }
    guard case .busy = fixture.next() else { throw ShellFixture.full }
    let reopened = try fixture.reopen()
    #expect(fixture.shown == before)
    let changes = reopened.effects.compactMap { effect in
      if case .view(let change) = effect { change } else { nil }
    }
    #expect(changes.count == 1)
    #expect(changes.first?.reason == .externalChange)
    #expect(changes.first?.changes.map(\.key) == [Key("a"), Key("b")])
    #expect(changes.first?.changes.map(\.value) == [try EncodedValue("old"), nil])
    #expect(changes.first?.superseded == [Key("a"), Key("b")])
    #expect(reopened.settled == [lost, new])
    #expect(failure(fixture.shell.takeFate(of: lost)) == .storage(ShellFixture.full))
    #expect(failure(fixture.shell.takeFate(of: new)) == .storage(ShellFixture.full))
  }

  @Test func `the next replica's first commit tells whether storage takes one`() throws {
    var fixture = try ShellFixture()
    try fixture.fail()
    #expect(fixture.shell.health.problem == ShellFixture.full)
    #expect(!fixture.shell.wantsFlush && fixture.shell.hasWork)
    let round = try fixture.nextRound()
    #expect(round.early.isEmpty)
    #expect(round.mutations.contains { if case .setClock = $0 { true } else { false } })
    let aftermath = fixture.shell.committed()
    #expect(aftermath.turn == .recovered)
    #expect(fixture.shell.health.problem == nil)
    let write = try fixture.write("a")
    fixture.drain()
    #expect(isSuccess(fixture.shell.takeFate(of: write)))
  }

  @Test func `tries come ever more rarely, up to a limit`() throws {
    var fixture = try ShellFixture()
    try fixture.fail()
    var waits: [UInt64] = []
    for number in 0..<9 {
      // Either the first commit fails, or storage cannot even be read.
      if number.isMultiple(of: 2) {
        if number > 0 { _ = try fixture.reopen() }
        _ = try fixture.nextRound()
      }
      let failed = fixture.shell.failed(ShellFixture.other, at: fixture.now)
      #expect(failed.turn == nil)
      #expect(fixture.shell.health.problem == ShellFixture.other)
      let end = try #require(fixture.shell.wakesAtMilliseconds)
      waits.append(end - fixture.now.monotonicMilliseconds)
      fixture.now.monotonicMilliseconds = end - 1
      guard case .idle = fixture.next() else { throw ShellFixture.full }
      fixture.advance(1)
      guard case .reload = fixture.next() else { throw ShellFixture.full }
    }
    #expect(waits == [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000])
    _ = try fixture.reopen()
    fixture.drain()
    #expect(fixture.shell.health.problem == nil)
    // From the start again.
    try fixture.fail()
    _ = try fixture.nextRound()
    _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    #expect(fixture.shell.wakesAtMilliseconds == fixture.now.monotonicMilliseconds + 500)
  }

  @Test func `while storage fails only stores and settings are kept, for the next replica`() throws
  {
    var fixture = try ShellFixture()
    var random = SeededEntropy(seed: 21)
    let (stays, goes) = (CarrierID(random.draw()), CarrierID(random.draw()))
    _ = try fixture.take(.carrier(goes, .attached(shortestMilliseconds: 5_000)))
    try fixture.fail()
    #expect(fixture.shell.replica.carrierIDs == [goes])
    _ = try fixture.nextRound()
    _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    let new = try #require(StoreIdentifier("com.example.New"))
    let session = SessionID(rawValue: 1)
    let kept: [Input] = [
      .open(new, .standard), .clockStatus(isSynchronised: true), .keepHistory(false),
      .carrier(stays, .attached(shortestMilliseconds: 5_000)), .carrier(goes, .removed),
    ]
    let refused: [Input] = [
      .write(WriteID(rawValue: 90), TestWorld.store, [set("a", 1)]),
      .adopt(WriteID(rawValue: 91), TestWorld.store, []), .flush, .tick, .acceptTime,
      .takeRefusals(TestWorld.store, through: 1), .writable(session, true), .room(session),
      .disconnected(session), .learn([]), .acceptLoss(TestWorld.store), .carrier(stays, .asked),
    ]
    for input in kept {
      guard case .kept = fixture.shell.take(input, at: fixture.now) else {
        throw ShellFixture.full
      }
    }
    for input in refused {
      guard case .refused(.storage(ShellFixture.full)) = fixture.shell.take(input, at: fixture.now)
      else { throw ShellFixture.full }
    }
    #expect(fixture.shell.replica.usage(of: new) == nil)
    fixture.advance(Shell.longestRetryMilliseconds)
    fixture.drain()
    #expect(fixture.shell.health.problem == nil)
    #expect(fixture.shell.replica.usage(of: new) != nil)
    #expect(try fixture.storage.load().stores[new]?.isOpened == true)
    #expect(fixture.shell.clockStatus?.isSynchronised == true)
    #expect(try fixture.storage.load().keepsHistory == false)
    #expect(fixture.shell.replica.carrierIDs == [stays])
  }

  @Test func `a store that is opened while the first commit is tried is not forgotten`() throws {
    for commits in [true, false] {
      var fixture = try ShellFixture()
      try fixture.fail()
      _ = try fixture.nextRound()
      let new = try #require(StoreIdentifier("com.example.New"))
      guard case .handled = fixture.shell.take(.open(new, .standard), at: fixture.now) else {
        throw ShellFixture.full
      }
      if commits {
        _ = fixture.shell.committed()
      } else {
        _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
        fixture.advance(Shell.longestRetryMilliseconds)
      }
      fixture.drain()
      #expect(fixture.shell.health.problem == nil)
      #expect(try fixture.storage.load().stores[new]?.isOpened == true, "commits: \(commits)")
    }
  }

  @Test func `a tick that is due while storage fails comes later`() throws {
    var fixture = try ShellFixture()
    try fixture.fail()
    fixture.shell.tickAt = fixture.now.monotonicMilliseconds
    #expect(fixture.shell.wakesAtMilliseconds == nil, "the first commit comes before")
    #expect(fixture.shell.wake(at: fixture.now).isEmpty)
    _ = try fixture.nextRound()
    _ = fixture.shell.committed()
    #expect(fixture.shell.wakesAtMilliseconds == fixture.now.monotonicMilliseconds)
    _ = fixture.shell.wake(at: fixture.now)
    #expect(fixture.shell.wakesAtMilliseconds != fixture.now.monotonicMilliseconds)
  }

  @Test func `a batch that cannot be read fails no write that was committed`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a")
    let round = try fixture.nextRound()
    try fixture.storage.commit(round.mutations)
    let later = try fixture.write("b")
    let failed = fixture.shell.failed(ShellFixture.other, isCommitted: true, at: fixture.now)
    #expect(failed.settled == [write] && failed.turn == .failed)
    #expect(isSuccess(fixture.shell.takeFate(of: write)))
    guard case .reload = fixture.next() else { throw ShellFixture.full }
    #expect(try fixture.reopen().settled == [later])
    #expect(fixture.shown.keys.sorted() == [Key("a")])
  }

  @Test func `a copy takes its new incarnation in the first commit that succeeds`() throws {
    var fixture = try ShellFixture()
    let old = try fixture.storage.load().incarnation
    _ = try fixture.write("a")
    _ = try fixture.nextRound()
    _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    for isLast in [false, true] {
      guard case .reload = fixture.next() else { throw ShellFixture.full }
      _ = fixture.shell.reopen(try fixture.replica(), isCopy: true, at: fixture.now)
      let round = try fixture.nextRound()
      #expect(round.mutations.contains { if case .setIncarnation = $0 { true } else { false } })
      if isLast { try fixture.storage.commit(round.mutations) }
      if isLast {
        _ = fixture.shell.committed()
      } else {
        _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
      }
      fixture.advance(Shell.longestRetryMilliseconds)
    }
    #expect(try fixture.storage.load().incarnation != old)
  }

  // MARK: Closing

  @Test func `a closed shell takes nothing in, and does what was taken`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a", gathers: true)
    fixture.shell.close()
    for input: Input in [
      .write(WriteID(rawValue: 90), TestWorld.store, [set("b", 1)]), .tick,
      .open(TestWorld.store, .standard), .clockStatus(isSynchronised: true),
    ] {
      guard case .refused(.closed) = fixture.shell.take(input, at: fixture.now) else {
        throw ShellFixture.full
      }
    }
    fixture.drain()
    #expect(isSuccess(fixture.shell.takeFate(of: write)))
    let end = fixture.shell.end()
    #expect(end.settled == [] && end.problem == nil)
  }

  @Test func `a closed shell goes back to what is durable once, and tries no more`() throws {
    for isSoundAgain in [false, true] {
      var fixture = try ShellFixture()
      let write = try fixture.write("a")
      fixture.shell.close()
      _ = try fixture.nextRound()
      _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
      guard case .reload = fixture.next() else { throw ShellFixture.full }
      _ = try fixture.reopen()
      #expect(fixture.shown.isEmpty)
      #expect(failure(fixture.shell.takeFate(of: write)) == .storage(ShellFixture.full))
      _ = try fixture.nextRound()
      if isSoundAgain {
        #expect(fixture.shell.committed().turn == .recovered)
      } else {
        _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
      }
      fixture.advance(Shell.longestRetryMilliseconds)
      guard case .idle = fixture.next() else { throw ShellFixture.full }
      #expect(fixture.shell.end().problem == ShellFixture.full, "the write is lost")
    }
  }

  @Test func `ending settles what nobody will do`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a")
    fixture.shell.close()
    #expect(fixture.shell.end().settled == [write])
    #expect(failure(fixture.shell.takeFate(of: write)) == .closed)
  }
}
