import Foundation
import KithCore
import Synchronization
import Testing

@testable import Kith

/// What the client's side does with refusals, silence and the end, against a node by hand.
@Suite(.timeLimit(.minutes(5)))
struct AttachedEndTests {
  @Test func aWriteThatTheNodeRefusesIsUndoneAndTold() async throws {
    let node = try ScriptedNode()
    let policy = Policy(keys: 2)
    let program = try await node.attach(
      shows: [try ControlEntry(key: "a", value: 1)], policy)
    let store = program.store
    let changes = store.changes
    let all = store.snapshotAndChanges().changes
    // It fits as far as the program can see. The node has just taken another's write.
    try await blocking {
      try store.set(2, forKey: "b")
      let commit = try node.next()
      #expect(commit.operation == .commit && commit.writes?.map(\.key) == ["b"])
      try node.tell(.serverChange, [("c", 3)])
      let numbers = QuotaNumbers(
        usedBytes: 1, askedBytes: 2, limitBytes: 3, usedKeys: 2, askedKeys: 3, limitKeys: 2)
      try node.answer(commit.id, KithError(.quotaExceeded, "full", quota: numbers))
    }
    var heard = changes.makeAsyncIterator()
    #expect(
      await heard.next() == Change(reason: .serverChange, items: [.init("c", nil, 3)]))
    let undone = Change(
      reason: .quotaViolationChange, items: [.init("b", 2, nil)], superseded: ["b"])
    #expect(await heard.next() == undone)
    #expect(store.dictionary == ["a": 1, "c": 3])
    #expect(program.backing.usage(of: .test).keys == 2)
    var allHeard = all.makeAsyncIterator()
    #expect(await allHeard.next()?.reason == .ownWrite)
    // Who waits for a durable write is told why.
    let durable = outcome(of: store) { $0.set(4, forKey: "a") }
    try await blocking {
      try node.answer(try node.next().id, KithError(.diskFull, "full"))
    }
    let error = await durable.value
    #expect(error?.code == .diskFull)
    #expect(
      await heard.next()
        == Change(reason: .serverChange, items: [.init("a", 4, 1)], superseded: ["a"]))
    try await program.close()
  }

  @Test func anothersWriteUnderAnUnansweredOneShowsWithTheAnswerAndItsReason() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let changes = program.store.changes
    try await blocking {
      try program.store.set("mine", forKey: "k")
      _ = try node.next()
      try node.tell(.ownWrite, [("k", "mine")])
      try node.tell(.initialSyncChange, [("k", "theirs")])
      try node.tell(.serverChange, [("other", 1)])
    }
    var heard = changes.makeAsyncIterator()
    // The echo is not told, and what lies under the write does not show yet.
    #expect(await heard.next() == Change(reason: .serverChange, items: [.init("other", nil, 1)]))
    #expect(program.store.value(forKey: "k") == "mine")
    try await blocking { try node.answer(2) }
    #expect(
      await heard.next()
        == Change(reason: .initialSyncChange, items: [.init("k", "mine", "theirs")]))
    #expect(program.store.value(forKey: "k") == "theirs")
    try await program.close()
  }

  @Test func linesThatBelongTogetherShowTogether() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let changes = program.store.changes
    try await blocking {
      try node.tell(.serverChange, [("a", 1)], hasMore: true)
      // An answer between shows that the first line was read.
      try program.store.set(0, forKey: "mine")
      let commit = try node.next()
      try node.answer(commit.id, KithError(.invalidKey, "to have an answer"))
      try program.store.flush()
      #expect(program.store.value(forKey: "a") == nil)
      try node.tell(.quotaViolationChange, [("b", 2)])
    }
    var heard = changes.makeAsyncIterator()
    #expect(await heard.next()?.superseded == ["mine"])
    #expect(await heard.next() == Change(reason: .serverChange, items: [.init("a", nil, 1)]))
    #expect(program.store.dictionary["b"] == 2)
    #expect(
      await heard.next() == Change(reason: .quotaViolationChange, items: [.init("b", nil, 2)]))
    try await program.close()
  }

  @Test func whatWasNotAnsweredIsPendingAndWrittenAgainToTheNext() async throws {
    let ended = Counter()
    let node = try ScriptedNode()
    let program = try await node.attach(onEnd: { _ in ended.add() })
    let store = program.store
    try await blocking {
      try store.set(1, forKey: "answered")
      try store.set(2, forKey: "a")
    }
    let durable = outcome(of: store) {
      $0.set(3, forKey: "b")
      $0.remove("a")
    }
    try await until { program.backing.pending.count == 3 }
    try await blocking {
      let commit = try node.next()
      try node.tell(.ownWrite, [("answered", 1)])
      try node.answer(commit.id)
      _ = try node.next()
    }
    try await until { program.backing.pending.count == 2 }
    async let flushed: KithError? = blocking {
      do throws(KithError) {
        try store.flush()
        return nil
      } catch {
        return error
      }
    }
    try await until { program.backing.state.withLock { !$0.flushes.isEmpty } }
    node.hangUp()
    #expect(try await flushed?.code == .closed)
    try await until { ended.value == 1 }
    let operations: [[KithCore.Operation]] = [
      [try .encoding(2, forKey: "a")],
      [try .encoding(3, forKey: "b"), try .encoding(nil, forKey: "a")],
    ]
    #expect(program.backing.pending == operations)
    // What is written before the next one is there goes to it as well.
    try store.set(4, forKey: "late")
    #expect(program.backing.pending.count == 3)
    // What is pending stays shown, and goes to the next one, where others wrote meanwhile.
    #expect(store.dictionary == ["answered": 1, "b": 3, "late": 4])
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await owner.commit {
      $0.set(1, forKey: "answered")
      $0.set("theirs", forKey: "new")
      $0.set("theirs", forKey: "b")
    }
    let changes = store.changes
    try await served.run {
      let pending = program.backing.takePending()
      #expect(pending.map(\.isAwaited) == [false, true, false])
      let error = #expect(throws: KithError.self) { try store.set(5, forKey: "c") }
      #expect(error?.code == .closed)
      let durableError = await #expect(throws: KithError.self) {
        try await store.commit { $0.set(5, forKey: "c") }
      }
      #expect(durableError?.code == .closed)
      let next = try await served.attach(view: store.view, pending: pending)
      store.backing = next.backing
      let failure = await durable.value
      #expect(failure?.code == nil)
      #expect(store.dictionary == ["answered": 1, "new": "theirs", "b": 3, "late": 4])
      try await until { owner.dictionary == store.dictionary }
      var heard = changes.makeAsyncIterator()
      #expect(
        await heard.next() == Change(reason: .serverChange, items: [.init("new", nil, "theirs")]))
      try await blocking {
        try store.set(5, forKey: "c")
        try store.flush()
      }
      #expect(owner.value(forKey: "c") == 5)
      try await next.close()
    }
    try await program.close()
    #expect(ended.value == 1)
    try served.node.close()
  }

  @Test func aPendingWriteThatDoesNotFitAnyMoreIsRefused() async throws {
    let policy = Policy(keys: 1)
    let node = try ScriptedNode()
    let program = try await node.attach(policy)
    let durable = outcome(of: program.store) { $0.set(1, forKey: "mine") }
    try await until { program.backing.pending.count == 1 }
    node.hangUp()
    try await until { program.backing.state.withLock { $0.ending != nil } }
    let served = try await Served()
    let owner = try served.node.store("com.example.test", policy: policy)
    try await owner.commit { $0.set(2, forKey: "theirs") }
    try await served.run {
      var heard = program.store.changes.makeAsyncIterator()
      let next = try await served.attach(
        policy, view: program.store.view, pending: program.backing.takePending())
      let error = await durable.value
      #expect(error?.code == .quotaExceeded)
      #expect(
        await heard.next() == Change(reason: .serverChange, items: [.init("theirs", nil, 2)]))
      #expect(
        await heard.next()
          == Change(
            reason: .quotaViolationChange, items: [.init("mine", 1, nil)], superseded: ["mine"]))
      try await next.close()
    }
    try await program.close()
    try served.node.close()
  }

  @Test func closingTellsWhoWaitsAndCallsNobody() async throws {
    let ended = Counter()
    let node = try ScriptedNode()
    let program = try await node.attach(onEnd: { _ in ended.add() })
    let durable = outcome(of: program.store) { $0.set(1, forKey: "a") }
    try await until { program.backing.pending.count == 1 }
    try await program.close()
    let error = await durable.value
    #expect(error?.code == .closed)
    #expect(ended.value == 0)
    try await program.close()
  }

  @Test func whoWaitsTooLongIsToldAndTheWriteStays() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let durable = outcome(of: program.store) { $0.set(1, forKey: "a") }
    try await until { program.backing.pending.count == 1 }
    let late = SuspendingClock.now + AttachedLimits.answer
    program.backing.tellWhoWaitedTooLong(at: late - .seconds(20))
    program.backing.tellWhoWaitedTooLong(at: late + .seconds(1))
    let error = await durable.value
    #expect(error?.code == .timedOut)
    #expect(program.store.value(forKey: "a") == 1)
    #expect(program.backing.pending.count == 1)
    // The answer comes after all.
    try await blocking {
      let commit = try node.next()
      try node.tell(.ownWrite, [("a", 1)])
      try node.answer(commit.id)
      try program.store.flush()
    }
    #expect(program.backing.pending.isEmpty)
    try await program.close()
  }

  @Test func stoppingWaitsForAnswersAndTakesNoWrites() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    try await blocking {
      try program.store.set(1, forKey: "a")
    }
    async let stopped: Void = blocking { program.backing.stop() }
    try await until { program.backing.state.withLock { !$0.flushes.isEmpty } }
    let error = #expect(throws: KithError.self) { try program.store.set(2, forKey: "b") }
    #expect(error?.code == .closed)
    try await blocking { try node.answer(try node.next().id) }
    try await stopped
    #expect(program.backing.takePending().isEmpty)
    #expect(program.backing.hasEnded)
    try await program.close()
  }

  @Test func theEndMayCloseAndComesOnce() async throws {
    let served = try await Served()
    let ended = Counter()
    try await served.run {
      _ = try await served.attach(onEnd: {
        $0.close()
        ended.add()
      })
    }
    try await until { ended.value == 1 }
    try served.node.close()
  }

  @Test func aNodeThatBreaksTheProtocolIsLeft() async throws {
    for text in [
      "no json", #"{"id":7,"isLast":true}"#, #"{"id":1,"isLast":false}"#,
      #"{"id":1,"isLast":false,"change":{"reason":"?","old":[],"new":[],"superseded":[],"isJoined":false}}"#,
    ] {
      let ended = Counter()
      let node = try ScriptedNode()
      let program = try await node.attach(onEnd: { _ in ended.add() })
      try await blocking { try node.say(.init(string: text + "\n")) }
      try await until { ended.value == 1 }
      try await program.close()
    }
  }

  @Test func aNodeThatDoesNotAnswerHoldsBoundedBytes() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach(Policy(totalBytes: 16 << 20))
    let value = PropertyListValue.string(String(repeating: "x", count: 600_000))
    let written = Counter()
    async let writing: Void = blocking {
      for index in 0..<10 {
        try program.store.set(value, forKey: "k\(index)")
        written.add()
      }
    }
    try await until { program.backing.state.withLock { $0.roomWaiters.count } == 1 }
    async let last: Void = program.store.commit { $0.set(value, forKey: "last") }
    try await until { program.backing.state.withLock { $0.roomWaiters.count } == 2 }
    #expect(
      program.backing.state.withLock { $0.shown.unansweredBytes } <= AttachedLimits.unansweredBytes)
    #expect((3..<10).contains(written.value))
    // Each answer lets more through; nothing is lost on the way.
    try await blocking {
      for _ in 0..<11 { try node.answer(try node.next().id) }
    }
    try await writing
    try await last
    #expect(program.backing.pending.isEmpty)
    try await program.close()
  }

  @Test func aNodeThatIsGoneIsNoRiddleToWhoAsks() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    node.hangUp()
    // Its socket goes with it.
    try FileManager.default.removeItem(atPath: node.directory.child("control"))
    try await blocking {
      #expect(program.store.hiddenEntries.isEmpty)
      #expect(program.store.refusals.isEmpty)
      let report = program.store.syncReport
      #expect(report.hasUnpublishedWrites && !report.isComplete)
    }
    await program.backing.waitUntilComplete(.test, timeout: .milliseconds(50))
    try await program.close()
  }

  /// A durable write that goes on beside the test, and why it failed.
  private func outcome(
    of store: KeyValueStore, _ body: @escaping @Sendable (inout Transaction) -> Void
  ) -> Task<KithError?, Never> {
    Task {
      do throws(KithError) {
        try await store.commit { body(&$0) }
        return nil
      } catch {
        return error
      }
    }
  }

  @Test func theOtherEndOfASocketIsKnown() throws {
    var ends: [Int32] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(ControlSocket.isSameUser(descriptor: ends[0]))
    // What is no socket has no other end.
    #expect(!ControlSocket.isSameUser(descriptor: -1))
  }
}
