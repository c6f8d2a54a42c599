import KithCrypto
import Testing

@testable import KithCore

@Suite struct ShellTests {
  // MARK: Rounds

  @Test func `a write shows at once, is one round, and is settled by its end`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a")
    #expect(fixture.shown[Key("a")] != nil)
    #expect(fixture.shell.hasWork && fixture.shell.wantsFlush)
    guard case .idle = fixture.shell.next(at: fixture.now) else { throw ShellFixture.full }
    let round = try fixture.nextRound()
    #expect(round.beforeCommit.isEmpty)
    #expect(
      round.mutations.contains { if case .put(.store(_, .draft), _) = $0 { true } else { false } })
    #expect(fixture.shell.isBusy && fixture.shell.isPending(write))
    guard case .busy = fixture.shell.next(at: fixture.now) else { throw ShellFixture.full }
    #expect(fixture.shell.takeResult(of: write) == nil)
    let aftermath = fixture.shell.committed()
    #expect(aftermath.settled == [write])
    #expect(aftermath.healthChange == nil)
    #expect(isSuccess(fixture.shell.takeResult(of: write)))
    #expect(fixture.shell.takeResult(of: write) == nil, "a result is returned once")
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
      effects.map {
        $0 == "p" ? .persist([.put(.clock, HybridTime.zero.row)]) : .send(session, [1, 2])
      })
    #expect(round.beforeCommit.count == early)
    #expect(round.afterCommit.count == late)
    #expect(round.mutations.count == effects.count { $0 == "p" })
    let clock = effects.count { $0 == "p" } * (Limits.overheadBytes + 8)
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
      .awaitDrain(session), .promote(session), .close(session, .silent), .accepted(write),
      .refused(write, .revoked), .refusedStore(store, .tooManyStores(limit: 1)),
      .refusedMembership(.ownDevice), .durable(write),
      .view(ViewChange(store: store, reason: nil, changes: [])), .pulledAll(session), .progress,
      .addresses([:]), .leftBehind([]), .wake(atMonotonicMilliseconds: 1), .report(.newIncarnation),
    ]
    for effect in effects { #expect(effect.weight >= Limits.overheadBytes, "\(effect)") }
    let told = Effect.addresses([device: ["192.0.2.1:1", "192.0.2.2:1"]])
    #expect(told.weight > 3 * Limits.overheadBytes)
    let stored = Mutation.addresses(device, ["192.0.2.1:1", "192.0.2.2:1"])
    #expect(
      Effect.persist([stored, .put(.clock, HybridTime.zero.row)]).weight > 3 * Limits.overheadBytes)
  }

  // MARK: Coalescing

  @Test func `writes that coalesce wait for the time, and for nothing else`() throws {
    var fixture = try ShellFixture()
    let tick = fixture.shell.wakesAtMilliseconds
    for key in ["a", "b"] {
      _ = try fixture.write(key, coalesces: true)
      fixture.advance(5)
    }
    let end = 1_000 + Shell.coalescingMilliseconds
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

  @Test func `coalescing ends for a write that does not coalesce, a barrier, and closing`() throws {
    let ends: [(inout ShellFixture) throws -> Void] = [
      { _ = try $0.write("b") },
      { _ = $0.shell.queueBarrier(WriteID(rawValue: 100)) },
      { $0.shell.close() },
      { $0.shell.endCoalescing() },
    ]
    for end in ends {
      var fixture = try ShellFixture()
      _ = try fixture.write("a", coalesces: true)
      try end(&fixture)
      #expect(fixture.shell.wantsFlush)
    }
  }

  @Test func `a write does not coalesce behind one that waits for a commit`() throws {
    var fixture = try ShellFixture()
    _ = try fixture.write("a")
    _ = try fixture.write("b", coalesces: true)
    #expect(fixture.shell.wantsFlush)
  }

  // MARK: Marks

  @Test func `a barrier is settled after all that was taken before`() throws {
    var fixture = try ShellFixture()
    let barrier = WriteID(rawValue: 100)
    guard case .nothingWaits = fixture.shell.queueBarrier(barrier) else { throw ShellFixture.full }
    _ = try fixture.write("a")
    _ = try fixture.nextRound()
    // The commit under way is not durable yet.
    guard case .queued = fixture.shell.queueBarrier(barrier) else { throw ShellFixture.full }
    let second = try fixture.write("b")
    #expect(!fixture.shell.committed().settled.contains(barrier))
    let round = try fixture.nextRound()
    #expect(!round.mutations.isEmpty)
    #expect(Set(fixture.shell.committed().settled) == [barrier, second])
    try fixture.fail()
    guard case .refused(ShellFixture.full) = fixture.shell.queueBarrier(barrier) else {
      throw ShellFixture.full
    }
  }

  // MARK: Closing

  @Test func `a closed shell takes nothing in, and does what was taken`() throws {
    var fixture = try ShellFixture()
    let write = try fixture.write("a", coalesces: true)
    fixture.shell.close()
    for input: Input in [
      .write(WriteID(rawValue: 90), TestWorld.store, [set("b", 1)]), .tick,
      .open(TestWorld.store, .standard), .clockStatus(isSynchronised: true),
    ] {
      guard case .refused(.closed) = fixture.shell.handle(input, at: fixture.now) else {
        throw ShellFixture.full
      }
    }
    fixture.drain()
    #expect(isSuccess(fixture.shell.takeResult(of: write)))
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
      #expect(failure(fixture.shell.takeResult(of: write)) == .storage(ShellFixture.full))
      _ = try fixture.nextRound()
      if isSoundAgain {
        #expect(fixture.shell.committed().healthChange == .recovered)
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
    #expect(failure(fixture.shell.takeResult(of: write)) == .closed)
  }
}
