import Dispatch
import KithCrypto
import Logging
import Synchronization
import Testing

@testable import Kith
@testable import KithCore

/// Which work of an engine is charged to the session that caused it, and when sessions are not read.
struct SessionPausesTests {
  private let clock = Instant(wallMilliseconds: 1_000_000, monotonicMilliseconds: 1_000_000)
  private let account: AccountID
  /// Of three members of one account.
  private let engines: [Engine]
  private let transport = PausedSessions()
  private let sessions = [SessionID(rawValue: 1), SessionID(rawValue: 2)]

  init() throws {
    var entropy = SeededEntropy(seed: 12)
    let founder = Founder(devices: 3, entropy: &entropy)
    account = founder.account
    engines = try founder.members.map { [clock] member in
      try Engine(
        account: founder.account, keys: member.keys, process: ProcessID(entropy.draw()),
        storage: MemoryStorage(member.snapshot),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: { clock })
    }
  }

  private func peer(_ number: Int) -> SessionPeer {
    SessionPeer(
      transportKey: engines[number].keys.transportPublicKey,
      hello: engines[number].read { $0.hello(port: 0, at: clock) }, isDialled: false,
      address: "192.0.2.\(number):4114")
  }

  private func message(_ bytes: [UInt8]) throws -> InboundMessage {
    try #require(InboundMessage(decoding: bytes, account: account))
  }

  /// A session had its own limit, so those of many devices could together keep the writer busy.
  @Test func noSessionIsReadWhileMuchOfAnyWaitsForTheDisk() throws {
    let store = try #require(StoreIdentifier("com.example.test"))
    _ = try engines[0].open(store, policy: .standard)
    #expect(engines[0].beginRunning(transport: transport))
    for (number, session) in sessions.enumerated() {
      engines[0].input(.connected(session, peer(number + 1)))
    }
    engines[0].work()
    var number: UInt64 = 0
    // The first may be paused for the time that it took, too.
    while !transport.paused.contains(sessions[1]), number < 5_000 {
      number += 1
      var asked = StoreHave(store: store, vector: [:], digest: nil, policy: .standard)
      asked.isAwaited = true
      let have = Have(number: number, isWhole: true, listsAll: false, stores: [asked])
      for bytes in have.messages() {
        engines[0].input(.received(sessions[0], try message(bytes)))
      }
    }
    // Small answers weigh something, too.
    #expect((100...1_100).contains(number), "\(number) empty answers")
    #expect(transport.paused == Set(sessions))
    engines[0].work()
    #expect(!transport.paused.contains(sessions[1]))
  }

  /// A session that brought more was ended, so a member could keep two devices apart for good: it
  /// made the records larger than that.
  @Test func aSessionBringsAnyNumberOfRecordsButNotAtOnce() throws {
    #expect(engines[0].beginRunning(transport: transport))
    engines[0].input(.connected(sessions[0], peer(1)))
    engines[0].work()
    let records = try message(try #require(engines[0].read { $0.roster.records }.messages().first))
    var count = 0
    while !transport.paused.contains(sessions[0]),
      count < 2 * Limits.recordBurstBytes / records.recordCost
    {
      // Time that it holds the lock pauses it, too.
      engines[0].state.withLock { $0.shares = SessionShares() }
      engines[0].input(.received(sessions[0], records))
      count += 1
    }
    #expect(count == Limits.recordBurstBytes / records.recordCost + 1)
    let until = engines[0].state.withLock { $0.pauses[sessions[0]]?.untilMilliseconds }
    let pause = try #require(until) - clock.monotonicMilliseconds
    #expect((1...UInt64(records.recordCost) / 16 + 1).contains(pause))
    #expect(engines[0].read { $0.exchangingSessions.contains(sessions[0]) })
  }

  /// Only the engine's lock was charged: devices of one member that asked for a large store again and
  /// again kept local writes waiting for half a second.
  @Test func whatTheWriterReadsForASessionIsCharged() {
    #expect(engines[0].beginRunning(transport: transport))
    for (number, session) in sessions.enumerated() {
      engines[0].input(.connected(session, peer(number + 1)))
    }
    engines[0].charge(SessionShares.burstNanoseconds / 2, to: sessions[0])
    engines[0].charge(SessionShares.burstNanoseconds / 2, to: sessions[1])
    #expect(transport.paused.isEmpty)
    engines[0].charge(SessionShares.burstNanoseconds, to: sessions[0])
    #expect(transport.paused == [sessions[0]])
  }

  /// A session that a program's thread read for stayed paused until the writer woke for something
  /// else, up to 30 s.
  @Test func theWriterWakesForTheEndOfAPause() {
    let engine = engines[0]
    #expect(engine.beginRunning(transport: transport))
    engine.state.withLock { state in
      // The writer sleeps, as nothing else is to be done.
      state.shell.tickAt = nil
      state.sleepsUntilMilliseconds =
        clock.monotonicMilliseconds + Engine.longestSleepMilliseconds
    }
    engine.charge(SessionShares.burstNanoseconds / 2, to: sessions[0])
    #expect(engine.wakeup.wait(timeout: .now()) == .timedOut)
    engine.charge(SessionShares.burstNanoseconds, to: sessions[0])
    #expect(transport.paused == [sessions[0]])
    #expect(engine.wakeup.wait(timeout: .now()) == .success)
  }

  /// Only messages were charged: a peer that takes one piece after another of a large answer was not.
  @Test func allThatAPeerCausesIsCharged() throws {
    let session = sessions[0]
    let have = Have(number: 1, isWhole: true, listsAll: true, stores: [])
    for input in try [
      .connected(session, peer(1)), .writable(session, true), .drained(session),
      .received(session, message(have.messages()[0])),
    ] as [Input] {
      #expect(input.cause?.session == session, "\(input)")
      #expect(input.cause?.recordCost == 0)
    }
    let records = engines[0].read { $0.roster.records }.messages()
    let cause = Input.received(session, try message(records[0])).cause
    #expect(cause?.recordCost == max(records[0].count, Limits.recordsMessageCost))
    #expect(Input.disconnected(session).cause == nil)
    #expect(Input.tick.cause == nil)
  }
}

private final class PausedSessions: SessionTransport {
  private let state = Mutex<Set<SessionID>>([])

  var paused: Set<SessionID> { state.withLock { $0 } }

  func pauseReading(_ session: SessionID, _ isPaused: Bool) {
    state.withLock { _ = isPaused ? $0.insert(session).inserted : $0.remove(session) != nil }
  }

  func send(_ messages: [[UInt8]], to session: SessionID) {}
  func awaitDrain(_ session: SessionID) {}
  func close(_ session: SessionID, _ reason: CloseReason) {}
  func closeAll() {}
}

/// How long sessions may hold the engine's lock, in virtual time.
struct SessionSharesTests {
  private let one: DeviceID
  private let other: DeviceID
  private let millisecond: UInt64 = 1_000_000

  init() throws {
    one = try DeviceID([UInt8](repeating: 1, count: 32))
    other = try DeviceID([UInt8](repeating: 2, count: 32))
  }

  @Test func aDeviceThatGoesOnHoldsItForHalfOfTheTime() {
    var shares = SessionShares()
    var (now, held, first): (UInt64, UInt64, Int) = (1_000, 0, 0)
    while now < 61_000 {
      now += 2
      held += 2
      if let verdict = shares.count(2 * millisecond, of: one, at: now) {
        first += verdict.isFirst ? 1 : 0
        #expect(verdict.pauseUntilMilliseconds > now)
        now = verdict.pauseUntilMilliseconds
      }
    }
    #expect((29_000...31_000).contains(held), "\(held) of 60,000 ms")
    #expect(first == 1)
  }

  @Test func aFloodOfRecordsHoldsItForAnEighthOfTheTime() {
    var shares = SessionShares()
    var (now, held): (UInt64, UInt64) = (1_000, 0)
    while now < 61_000 {
      now += 40
      held += 40
      let verdict = shares.count(40 * millisecond, of: one, withRecords: true, at: now)
      if let verdict { now = verdict.pauseUntilMilliseconds }
    }
    #expect((6_500...8_500).contains(held), "\(held) of 60,000 ms")
  }

  @Test func takingInAFullStoreIsNoTooMuch() {
    var shares = SessionShares()
    for _ in 0..<10 { #expect(shares.count(25 * millisecond, of: one, at: 5) == nil) }
    #expect(shares.count(25 * millisecond, of: one, at: 5) != nil)
    // Nobody else is slowed for it, and after a while it may again.
    #expect(shares.count(25 * millisecond, of: other, at: 5) == nil)
    for _ in 0..<10 { #expect(shares.count(25 * millisecond, of: one, at: 2_000) == nil) }
  }

  @Test func severalShareTheHalf() {
    var shares = SessionShares()
    for device in [one, other] { _ = shares.count(250 * millisecond, of: device, at: 5) }
    let alone = shares.count(10 * millisecond, of: one, at: 5)
    let beside = shares.count(10 * millisecond, of: other, at: 5)
    #expect(alone?.pauseUntilMilliseconds == 5 + 40)
    #expect(beside?.pauseUntilMilliseconds == 5 + 80)
  }

  @Test func oneLongMessageIsNotHeldAgainstWhatFollowsForEver() {
    var shares = SessionShares()
    let verdict = shares.count(60_000 * millisecond, of: nil, at: 5)
    #expect(
      verdict?.pauseUntilMilliseconds == 5 + SessionShares.longestPauseMilliseconds)
    #expect(shares.count(5 * millisecond, of: nil, at: 1_010) == nil)
  }
}
