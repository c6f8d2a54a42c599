import KithCrypto
import Testing

@testable import KithCore

/// A shell whose storage fails, and what it does until it works again.
@Suite struct ShellFailureTests {
  @Test func `a failed commit undoes what was shown, and tells the programs then`() throws {
    var fixture = try ShellFixture()
    _ = try fixture.write("a", "old")
    fixture.drain()
    let before = fixture.shown
    let lost = try fixture.write("a", "new")
    let new = try fixture.write("b")
    _ = try fixture.nextRound()
    let failed = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    #expect(failed.healthChange == .failed)
    #expect(failed.settled == [] && fixture.shell.isPending(lost), "not while the lost value shows")
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
    #expect(failure(fixture.shell.takeResult(of: lost)) == .storage(ShellFixture.full))
    #expect(failure(fixture.shell.takeResult(of: new)) == .storage(ShellFixture.full))
  }

  @Test(arguments: ["in the round", "in the outbox", "in the replica"])
  func `a failure that loses a write that nobody awaits is counted`(place: String) throws {
    var fixture = try ShellFixture()
    let id = WriteID(rawValue: 1 << 40)
    if place != "in the round" {
      _ = try fixture.write("a")
      _ = try fixture.nextRound()
    }
    try fixture.take(.write(id, TestWorld.store, [set("b", 1)]))
    if place == "in the round" { _ = try fixture.nextRound() }
    if place == "in the outbox" { try fixture.take(.flush) }
    _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    #expect(fixture.shell.loss?.number == 1)
    #expect(fixture.shell.loss?.error == ShellFixture.full)
    guard case .reload = fixture.next() else { throw ShellFixture.full }
    _ = try fixture.reopen()
    fixture.drain()
    guard case .nothingWaits = fixture.shell.queueBarrier(WriteID(rawValue: 2 << 40)) else {
      throw ShellFixture.full
    }
    // An awaited one is no loss: its writer is told.
    _ = try fixture.write("c")
    _ = try fixture.nextRound()
    _ = fixture.shell.failed(ShellFixture.full, at: fixture.now)
    #expect(fixture.shell.loss?.number == 1)
  }

  @Test func `a removed carrier is remembered until that is durable`() throws {
    var fixture = try ShellFixture()
    let id = CarrierID(Digest128 { _ in })
    try fixture.take(.carrier(id, .attached(shortestMilliseconds: 5_000)))
    fixture.drain()
    #expect(fixture.shell.carriers.count == 1)
    _ = try fixture.write("a")
    _ = try fixture.nextRound()
    try fixture.take(.carrier(id, .removed))
    _ = try fixture.write("b")
    try fixture.take(.flush)
    _ = fixture.shell.committed()
    #expect(fixture.shell.carriers.count == 1, "its commit comes")
    fixture.drain()
    #expect(fixture.shell.carriers.isEmpty)
  }

  @Test func `the next replica's first commit tells whether storage takes one`() throws {
    var fixture = try ShellFixture()
    try fixture.fail()
    #expect(fixture.shell.health.problem == ShellFixture.full)
    #expect(!fixture.shell.wantsFlush && fixture.shell.hasWork)
    let round = try fixture.nextRound()
    #expect(round.beforeCommit.isEmpty)
    #expect(round.mutations.contains { if case .put(.clock, _) = $0 { true } else { false } })
    let aftermath = fixture.shell.committed()
    #expect(aftermath.healthChange == .recovered)
    #expect(fixture.shell.health.problem == nil)
    let write = try fixture.write("a")
    fixture.drain()
    #expect(isSuccess(fixture.shell.takeResult(of: write)))
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
      #expect(failed.healthChange == nil)
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
      .takeRefusals(TestWorld.store, through: 1), .writable(session, true), .drained(session),
      .disconnected(session), .learn([]), .acceptLoss(TestWorld.store), .carrier(stays, .asked),
    ]
    for input in kept {
      guard case .deferred = fixture.shell.handle(input, at: fixture.now) else {
        throw ShellFixture.full
      }
    }
    for input in refused {
      guard
        case .refused(.storage(ShellFixture.full)) = fixture.shell.handle(input, at: fixture.now)
      else { throw ShellFixture.full }
    }
    #expect(fixture.shell.replica.usage(of: new) == nil)
    fixture.advance(Shell.longestRetryMilliseconds)
    fixture.drain()
    #expect(fixture.shell.health.problem == nil)
    #expect(fixture.shell.replica.usage(of: new) != nil)
    #expect(try fixture.storage.load().stores[new]?.isUsedHere == true)
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
      guard case .handled = fixture.shell.handle(.open(new, .standard), at: fixture.now) else {
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
      #expect(try fixture.storage.load().stores[new]?.isUsedHere == true, "commits: \(commits)")
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
    #expect(failed.settled == [write] && failed.healthChange == .failed)
    #expect(isSuccess(fixture.shell.takeResult(of: write)))
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
      #expect(
        round.mutations.contains { if case .put(.incarnation, _) = $0 { true } else { false } })
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
}
