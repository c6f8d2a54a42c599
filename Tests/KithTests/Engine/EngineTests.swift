import KithCore
import KithCrypto
import KithTestSupport
import Logging
import Synchronization
import Testing

@testable import Kith

/// An engine over storage that can fail, with a clock that is moved by hand.
struct EngineFixture {
  let engine: Engine
  let storage: FailingStorage
  let store: KeyValueStore
  private let time: TestTime

  final class TestTime: Sendable {
    let milliseconds = Atomic<UInt64>(1_000_000)
    var now: Instant {
      let now = milliseconds.load(ordering: .relaxed)
      return Instant(wallMilliseconds: now, monotonicMilliseconds: now)
    }
  }

  init(
    copyOf incarnation: Incarnation? = nil, failing: StorageError.Code? = nil,
    logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  ) throws {
    var entropy = SeededEntropy(seed: 7)
    let founder = Founder(devices: 1, entropy: &entropy)
    var disk = founder.members[0].snapshot
    disk.incarnation = incarnation
    storage = FailingStorage(MemoryStorage(disk, isCopy: incarnation != nil))
    storage.fail(failing)
    let time = TestTime()
    self.time = time
    engine = try Engine(
      account: founder.account, keys: founder.members[0].keys,
      process: ProcessID(entropy.draw()), storage: storage,
      logger: logger, clock: { time.now })
    let identifier = try #require(StoreIdentifier("com.example.test"))
    store = KeyValueStore(service: engine, view: try engine.open(identifier, policy: .standard))
  }

  func advance(milliseconds: UInt64) {
    time.milliseconds.wrappingAdd(milliseconds, ordering: .relaxed)
  }
}

@Suite(.timeLimit(.minutes(5)))
struct EngineTests {
  @Test func `a database is to be opened anew if loading it anew does not help`() async throws {
    let fixture = try EngineFixture()
    let store = fixture.store
    func failToWrite() async {
      fixture.storage.failNextCommit(.damaged)
      let error = await #expect(throws: KithError.self) {
        try await store.commit { $0.set("new", forKey: "a") }
      }
      #expect(error?.code == .damaged)
    }
    await failToWrite()
    try await store.commit { $0.set("newer", forKey: "a") }
    #expect(fixture.engine.damage.version == 0)
    fixture.storage.failLoading(.damaged)
    await failToWrite()
    fixture.advance(milliseconds: 60_000)
    #expect(throws: KithError.self) { try store.set("newest", forKey: "a") }
    #expect(fixture.engine.damage.version > 0)
  }

  @Test func aFailedCommitTellsTheCauseAndIsUndoneEverywhere() async throws {
    let fixture = try EngineFixture()
    let store = fixture.store
    try await store.commit { $0.set("old", forKey: "a") }
    let (shown, changes) = store.snapshotAndChanges()
    fixture.storage.fail(.diskFull)
    let error = await #expect(throws: KithError.self) {
      try await store.commit { $0.set("new", forKey: "a") }
    }
    #expect(error?.code == .diskFull)
    // Reads go on, and show what is durable.
    #expect(store.value(forKey: "a") == "old")
    // Writes are refused while it lasts.
    #expect(throws: KithError.self) { try store.set(1, forKey: "b") }
    #expect(fixture.engine.state.withLock { $0.problem }?.code == .diskFull)
    var view = shown
    var iterator = changes.makeAsyncIterator()
    for _ in 0..<2 {
      let change = try #require(await iterator.next())
      for item in change.items {
        #expect(view[item.key] == item.old)
        view[item.key] = item.new
      }
    }
    #expect(view == store.dictionary)
    // It recovers by itself when the disk does.
    fixture.storage.fail(nil)
    fixture.advance(milliseconds: 60_000)
    try await store.commit { $0.set("newer", forKey: "a") }
    #expect(store.value(forKey: "a") == "newer")
    #expect(fixture.engine.state.withLock { $0.problem } == nil)
  }

  @Test func aNodeThatRunsRecoversByItself() async throws {
    let fixture = try EngineFixture()
    let (store, engine) = (fixture.store, fixture.engine)
    #expect(engine.beginRunning(transport: NoTransport()))
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }  // Also where the test fails: the writer is waited for.
    fixture.storage.fail(.readOnly)
    try store.set(1, forKey: "lost")
    try await eventually { engine.state.withLock { $0.problem }?.code == .readOnly }
    try await eventually { store.value(forKey: "lost") == nil }
    fixture.storage.fail(nil)
    // A try that failed just before may plan the next one by the clock of just after.
    try await eventually {
      fixture.advance(milliseconds: 60_000)
      engine.wakeup.signal()
      return engine.state.withLock { $0.problem } == nil
    }
    try await store.commit { $0.set(2, forKey: "kept") }
    #expect(store.dictionary == ["kept": 2])
    engine.stopWriter()
    await writer
  }

  @Test func aWriteThatFailedLeftTheWriterAsleepPastTheNextTry() async throws {
    let fixture = try EngineFixture()
    let (store, engine) = (fixture.store, fixture.engine)
    #expect(engine.beginRunning(transport: NoTransport()))
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }
    let now = engine.clock().monotonicMilliseconds
    // Nothing is to be done for long.
    try await eventually {
      engine.state.withLock { $0.sleepsUntilMilliseconds } > now + 20_000
    }
    fixture.storage.fail(.diskFull)
    // It fails on this task; who tries again is the writer.
    await #expect(throws: KithError.self) { try await store.commit { $0.set(1, forKey: "a") } }
    try await eventually(seconds: 15) {
      engine.state.withLock { $0.sleepsUntilMilliseconds } <= now + 1_000
    }
    engine.stopWriter()
    await writer
  }

  @Test func aSetOnAStoppedNodeThatIsNotDurableThrows() throws {
    let fixture = try EngineFixture()
    fixture.storage.failNextCommit(.diskFull)
    let error = #expect(throws: KithError.self) { try fixture.store.set(1, forKey: "a") }
    #expect(error?.code == .diskFull)
    #expect(fixture.store.value(forKey: "a") == nil)
    try fixture.store.set(2, forKey: "a")
    #expect(fixture.store.value(forKey: "a") == 2)
  }

  @Test func flushingThrowsWhatTheDiskSaidAlsoWhereItIsSoundAgain() throws {
    let fixture = try EngineFixture()
    #expect(fixture.engine.beginRunning(transport: NoTransport()))
    try fixture.store.set(1, forKey: "a")  // Nobody drains yet.
    fixture.storage.failNextCommit(.diskFull)
    let error = #expect(throws: KithError.self) { try fixture.store.flush() }
    #expect(error?.code == .diskFull)
    #expect(fixture.engine.state.withLock { $0.problem } == nil)
    try fixture.store.flush()
    fixture.engine.stopWriter()
  }

  @Test("flush throws once, at each store, for accepted writes that the writer lost before")
  func flushingAfterALoss() async throws {
    let fixture = try EngineFixture()
    let engine = fixture.engine
    #expect(engine.beginRunning(transport: NoTransport()))
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }
    fixture.storage.failNextCommit(.diskFull)
    try fixture.store.set(1, forKey: "a")
    // The writer's commit failed, and it reloaded: nothing waits any more.
    try await eventually {
      engine.state.withLock { $0.shell.loss != nil && $0.problem == nil && !$0.shell.isBusy }
    }
    let other = KeyValueStore(
      service: engine, view: try engine.open(#require(StoreIdentifier("b")), policy: .standard))
    try other.flush()  // It was made later.
    let error = #expect(throws: KithError.self) { try fixture.store.flush() }
    #expect(error?.code == .diskFull)
    try fixture.store.flush()
    try fixture.store.set(2, forKey: "a")
    try fixture.store.flush()
    // The caller that awaits a write gets its error, so flush has none.
    fixture.storage.failNextCommit(.diskFull)
    await #expect(throws: KithError.self) {
      try await fixture.store.commit { $0.set(3, forKey: "a") }
    }
    try fixture.store.flush()
    engine.stopWriter()
    await writer
  }

  @Test func coalescedWritesAreOneCommitAfterAMoment() async throws {
    let fixture = try EngineFixture()
    let (store, storage, engine) = (fixture.store, fixture.storage, fixture.engine)
    #expect(engine.beginRunning(transport: NoTransport()))
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }  // Also where the test fails: the writer is waited for.
    let before = storage.commits
    for number in 0..<10 { try store.setCoalesced(.integer(1), forKey: "k\(number)") }
    #expect(store.keys.count == 10)
    // The writer has seen them, and waits for the clock, which stands still.
    let end = engine.clock().monotonicMilliseconds + Shell.coalescingMilliseconds
    try await eventually { engine.state.withLock { $0.sleepsUntilMilliseconds == end } }
    // Other inputs of the engine do not end the wait.
    engine.input(.tick)
    engine.work()
    #expect(storage.commits == before)
    fixture.advance(milliseconds: Shell.coalescingMilliseconds)
    engine.wakeup.signal()
    try await eventually { try storage.load().stores.values.contains { $0.drafts.count == 10 } }
    #expect(storage.commits == before + 1)
    engine.stopWriter()
    await writer
  }

  @Test func coalescingEndsIfSomebodyWaitsForTheDisk() async throws {
    let fixture = try EngineFixture()
    let (store, storage, engine) = (fixture.store, fixture.storage, fixture.engine)
    #expect(engine.beginRunning(transport: NoTransport()))
    // Its clock stands still, so of itself it commits none.
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }  // Also where the test fails: the writer is waited for.
    let ends: [() async throws -> Void] = [
      { try store.flush() },
      { try await store.commit { $0.set(1, forKey: "other") } },
      { try engine.close() },
    ]
    for end in ends {
      let before = storage.commits
      try store.setCoalesced(.integer(Int64(before)), forKey: "a")
      try store.setCoalesced(.integer(Int64(before)), forKey: "b")
      #expect(storage.commits == before)
      try await end()
      #expect(storage.commits == before + 1)
    }
    #expect(try storage.load().stores.values.contains { $0.drafts.count > 1 })
    engine.stopWriter()
    await writer
  }

  @Test func flushingWaitsForTheThreadThatCommits() async throws {
    let fixture = try EngineFixture()
    let (store, storage) = (fixture.store, fixture.storage)
    storage.hold()
    defer { storage.release() }
    async let first: Void = onThread { try store.set(1, forKey: "a") }
    try await eventually { storage.isHolding }
    async let second: Void = onThread { try store.set(2, forKey: "b") }
    try await eventually { store.value(forKey: "b") == 2 }
    let commits = storage.commits
    async let flushed: Int = {
      try await onThread { try store.flush() }
      return storage.commits
    }()
    storage.release()
    #expect(try await flushed > commits, "the second write was committed before flush returned")
    try await first
    try await second
  }

  @Test func closingThrowsWhatTheDiskSaidAlsoWhereItIsSoundAgain() throws {
    let fixture = try EngineFixture()
    #expect(fixture.engine.beginRunning(transport: NoTransport()))
    try fixture.store.set(1, forKey: "a")
    fixture.engine.stopWriter()
    fixture.storage.failNextCommit(.diskFull)
    let error = #expect(throws: KithError.self) { try fixture.engine.close() }
    #expect(error?.code == .diskFull)
  }

  @Test func aCopyTakesANewIncarnationAlsoWhenItsFirstCommitFails() async throws {
    let old = Incarnation(rawValue: 1)
    let fixture = try EngineFixture(copyOf: old, failing: .diskFull)
    #expect(fixture.engine.state.withLock { $0.problem }?.code == .diskFull)
    #expect(fixture.storage.isCopy)
    fixture.storage.fail(nil)
    fixture.advance(milliseconds: 60_000)
    try await fixture.store.commit { $0.set(1, forKey: "a") }
    #expect(!fixture.storage.isCopy)
    #expect(try fixture.storage.load().incarnation != old)
  }

  @Test func closingWaitsForTheThreadThatCommits() async throws {
    let fixture = try EngineFixture()
    let (store, storage, engine) = (fixture.store, fixture.storage, fixture.engine)
    storage.hold()
    defer { storage.release() }
    async let writing: Void = onThread { try store.set(1, forKey: "a") }
    try await eventually { storage.isHolding }
    async let closing: Void = onThread {
      try engine.close()
      storage.fail(.missing)  // As the directory is closed next.
    }
    try await eventually { engine.state.withLock { $0.isWorkEndAwaited } }
    storage.release()
    try await writing
    try await closing
    #expect(try storage.load().stores.values.contains { !$0.drafts.isEmpty })
  }

  @Test func tasksThatCommitAtOnceShareCommits() async throws {
    let fixture = try EngineFixture()
    let (store, storage, engine) = (fixture.store, fixture.storage, fixture.engine)
    let before = storage.commits
    #expect(engine.beginRunning(transport: NoTransport()))
    async let writer: Void = engine.runWriter()
    defer { engine.stopWriter() }  // Also where the test fails: the writer is waited for.
    try await withThrowingTaskGroup(of: Void.self) { group in
      storage.hold()
      defer { storage.release() }
      group.addTask { try await store.commit { $0.set(0, forKey: "k0") } }
      try await eventually { storage.isHolding }
      for task in 1..<64 {
        group.addTask {
          try await store.commit { $0.set(.integer(Int64(task)), forKey: "k\(task)") }
        }
      }
      try await eventually { store.keys.count == 64 }
      storage.release()
      try await group.waitForAll()
    }
    engine.stopWriter()
    await writer
    #expect(
      storage.commits - before == 2, "one for the first write, one for all that came meanwhile")
  }

  @Test func readersNeverSeeHalfATransaction() async throws {
    let fixture = try EngineFixture()
    let store = fixture.store
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask {
        for number in 0..<500 {
          try await store.commit {
            $0.set(.integer(Int64(number)), forKey: "left")
            $0.set(.integer(Int64(number)), forKey: "right")
          }
        }
      }
      group.addTask {
        for _ in 0..<2_000 {
          let view = store.dictionary
          #expect(view["left"] == view["right"])
          await Task.yield()
        }
      }
      try await group.waitForAll()
    }
  }

  @Test func aCloseEndsSequencesAndRefusesWrites() async throws {
    let fixture = try EngineFixture()
    let changes = fixture.store.changes
    try fixture.engine.close()
    for await _ in changes { Issue.record("nothing changed") }
    let error = #expect(throws: KithError.self) { try fixture.store.set(1, forKey: "a") }
    #expect(error?.code == .closed)
  }
}

final class NoTransport: SessionTransport {
  func send(_ messages: [[UInt8]], to session: SessionID) {}
  func awaitDrain(_ session: SessionID) {}
  func close(_ session: SessionID, _ reason: CloseReason) {}
  func closeAll() {}
}
