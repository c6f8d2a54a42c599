import KithCore
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// The order in which effects become durable, and the sessions and retries when storage fails.
@Suite(.timeLimit(.minutes(5)))
struct EngineOrderTests {
  @Test func `nothing is sent before it is written`() async throws {
    let pair = try DevicePair()
    let stores = try pair.stores()
    try pair.meet()
    #expect(stores[1].value(forKey: "n") == 0)
    // Connected: a write is one commit, and a message to the other.
    pair.storage.hold()
    defer { pair.storage.release() }
    let commits = pair.storage.commits
    async let writing: Void = onThread { try stores[0].set(1, forKey: "n") }
    try await eventually { pair.storage.isHolding }
    #expect(pair.transports[0].messages == 0, "the commit has begun, and has not ended")
    pair.storage.release()
    try await writing
    #expect(pair.storage.commits == commits + 1, "the one that was held is the write's")
    #expect(pair.transports[0].messages > 0)
    pair.carry()
    #expect(stores[1].value(forKey: "n") == 1)
  }

  /// Both before anybody here is told of it: that makes tasks run, for whose turn a peer would wait.
  @Test func `each round sends its change sets in one write, and its vectors in another`()
    async throws
  {
    let pair = try DevicePair()
    let stores = try ["one", "two", "three"].map { try pair.stores($0)[0] }
    pair.connect()
    pair.carry()
    try stores[0].set(0, forKey: "n")
    pair.carry()
    let progress = pair.devices[0].engine.progress
    // While a commit is under way, two other writes come to wait for the next round.
    pair.storage.hold()
    defer { pair.storage.release() }
    async let first: Void = onThread { try stores[0].set(1, forKey: "n") }
    try await eventually { pair.storage.isHolding }
    async let second: Void = onThread { try stores[1].set(1, forKey: "n") }
    async let third: Void = onThread { try stores[2].set(1, forKey: "n") }
    try await eventually("both writes to wait") {
      stores[1].value(forKey: "n") == 1 && stores[2].value(forKey: "n") == 1
    }
    let told = Mutex<[UInt64]>([])
    pair.transports[0].observe { told.withLock { $0.append(progress.version) } }
    let before = progress.version
    pair.storage.release()
    _ = try await (first, second, third)
    // Each round sends a change set of each store, and after the sync what claims it.
    let writes = pair.transports[0].observe(nil)
    #expect(writes.count == 4 && writes[0] > 0 && writes[2] > writes[0])
    // The first round's progress is told before the second's messages go.
    #expect(told.withLock { $0 } == [before, before, before + 1, before + 1])
    #expect(progress.version >= before + 2)
  }

  @Test func `a change set is seen while the disk syncs, and is acknowledged after it`()
    async throws
  {
    let pair = try DevicePair()
    let stores = try pair.stores()
    try pair.meet()
    pair.storage.holdSync()
    defer { pair.storage.release() }
    let isAcknowledged = Atomic(false)
    async let writing: Void = onThread {
      try stores[0].set(1, forKey: "n")
      isAcknowledged.store(true, ordering: .sequentiallyConsistent)
    }
    try await eventually { pair.storage.isHolding }
    #expect(pair.transports[0].messages == 1, "the change set, and no vector that covers it")
    for case .message(let bytes) in pair.transports[0].takeAll() {
      pair.devices[1].receive(bytes, on: SessionID(rawValue: 1))
    }
    #expect(stores[1].value(forKey: "n") == 1)
    let isEarly = isAcknowledged.load(ordering: .sequentiallyConsistent)
    #expect(!isEarly)
    pair.storage.release()
    try await writing
    #expect(pair.transports[0].messages > 0)
    pair.carry()
    #expect(stores[0].value(forKey: "n") == 1)
  }

  @Test func `a failed commit sends nothing, and ends all sessions`() throws {
    let pair = try DevicePair()
    let stores = try pair.stores()
    pair.connect()
    pair.carry()
    let closings = pair.transports[0].closings
    pair.storage.failNextCommit(.diskFull)
    let error = #expect(throws: KithError.self) { try stores[0].set(1, forKey: "n") }
    #expect(error?.code == .diskFull)
    #expect(pair.transports[0].messages == 0)
    // The core has begun anew, and knows of no session: who is met must be met anew.
    #expect(pair.transports[0].closings == closings + 1)
    pair.connect()
    try stores[0].set(2, forKey: "n")
    pair.carry()
    #expect(stores[1].value(forKey: "n") == 2)
  }

  @Test func `flushing waits for a commit under way also where nothing else is to be done`()
    async throws
  {
    let fixture = try EngineFixture()
    let (store, storage) = (fixture.store, fixture.storage)
    storage.hold()
    defer { storage.release() }
    async let writing: Void = onThread { try store.set(1, forKey: "a") }
    try await eventually { storage.isHolding }
    let hasReturned = Atomic<Bool>(false)
    async let flushing: Void = onThread {
      try store.flush()
      hasReturned.store(true, ordering: .sequentiallyConsistent)
    }
    let engine = fixture.engine
    try await eventually("the flush to wait") {
      engine.state.withLock { !$0.waiters.isEmpty }
        || hasReturned.load(ordering: .sequentiallyConsistent)
    }
    let hasNotWaited = hasReturned.load(ordering: .sequentiallyConsistent)
    #expect(!hasNotWaited)
    storage.release()
    try await writing
    try await flushing
  }

  @Test func `tries at a failing storage come ever more rarely, up to a limit`() throws {
    let pair = try DevicePair()
    let store = try pair.stores()[0]
    pair.storage.fail(.diskFull)
    #expect(throws: KithError.self) { try store.set(1, forKey: "n") }
    let step: UInt64 = 50
    var waits: [UInt64] = []
    var wait: UInt64 = 0
    var commits = pair.storage.commits
    while waits.count < 10 {
      pair.advance(milliseconds: step)
      wait += step
      pair.devices[0].tick()
      try #require(wait <= 2 * Shell.longestRetryMilliseconds, "it tries again; \(waits)")
      guard pair.storage.commits > commits else { continue }
      commits = pair.storage.commits
      waits.append(wait)
      wait = 0
    }
    for (before, after) in zip(waits, waits.dropFirst()) {
      #expect(after == min(2 * before, Shell.longestRetryMilliseconds), "\(waits)")
    }
    #expect(waits.last == Shell.longestRetryMilliseconds)
    // The first success begins from the start.
    pair.storage.fail(nil)
    pair.advance(milliseconds: Shell.longestRetryMilliseconds)
    pair.devices[0].tick()
    try store.set(2, forKey: "n")
    #expect(store.value(forKey: "n") == 2)
  }
}
