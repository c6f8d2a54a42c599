import Foundation
import KithCore
import KithTestSupport
import NIOCore
import Testing

@testable import Kith

/// An attached program's handling of refusals and of the end of the node, against a node by hand.
@Suite(.timeLimit(.minutes(5)))
struct AttachedEndTests {
  @Test func `a write shows once it is accepted, and not before`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach(shows: [try .encoding(1, forKey: "a")])
    let store = program.store
    #expect(store.dictionary == ["a": 1])
    let changes = store.snapshotAndChanges().changes
    async let written: Void = blocking { try store.set(2, forKey: "b") }
    try await blocking {
      let request = try node.next()
      guard case .write(.test, let operations, _) = request.call else {
        throw TimedOut()
      }
      #expect(operations == [try .encoding(2, forKey: "b")])
      #expect(store.value(forKey: "b") == nil)
      try node.tell(KeyValueStore.Change(reason: .ownWrite, items: [.init("b", nil, 2)]))
      try node.say(request.id, .answer(.done))
    }
    try await written
    #expect(store.value(forKey: "b") == 2)
    var heard = changes.makeAsyncIterator()
    #expect(
      await heard.next() == KeyValueStore.Change(reason: .ownWrite, items: [.init("b", nil, 2)]))
    try await program.close()
  }

  @Test func `a refusal is thrown, and nothing shows`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let full = KithError(.quotaExceeded, "full", key: "b")
    async let refused = error { try program.store.set(2, forKey: "b") }
    try await blocking {
      try node.say(try node.next().id, .failure(full))
    }
    let error = try await refused
    #expect(error?.code == .quotaExceeded && error?.message == "full" && error?.key == "b")
    #expect(program.store.dictionary.isEmpty)
    try await program.close()
  }

  @Test func `the changes of one step show together`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let changes = program.store.changes
    try await blocking {
      try node.tell(
        KeyValueStore.Change(reason: .externalChange, items: [.init("a", nil, 1)]),
        KeyValueStore.Change(
          reason: .quotaViolationChange, items: [.init("b", nil, 2)], superseded: ["c"]))
    }
    var heard = changes.makeAsyncIterator()
    #expect(
      await heard.next()
        == KeyValueStore.Change(reason: .externalChange, items: [.init("a", nil, 1)])
    )
    #expect(program.store.dictionary == ["a": 1, "b": 2])
    #expect(
      await heard.next()
        == KeyValueStore.Change(
          reason: .quotaViolationChange, items: [.init("b", nil, 2)], superseded: ["c"]))
    try await program.close()
  }

  @Test(arguments: [
    (
      NodeCall.commit(store: "com.example.Tests", operations: []), KithError.Code.timedOut
    ),
    (.undo(store: "com.example.Tests", .key("a", to: nil)), .timedOut), (.status, .control),
  ])
  func `of a lost answer a command is told whether its write may have been taken`(
    call: NodeCall, code: KithError.Code
  ) async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    async let failed = lostAnswer(to: call, on: program.node)
    try await blocking {
      _ = try node.next()
      node.hangUp()
    }
    #expect(await failed?.code == code)
    try await program.close()
  }

  /// The node may have taken it: written again, it could undo another program's later write.
  @Test func `a write whose answer was lost is said to be so, and is not written again`()
    async throws
  {
    let served = try await Served()
    let node = try ScriptedNode()
    let program = try await node.attach()
    let store = program.store
    let next = Counter()
    let waiting = KeyValueStore(service: program.node, view: store.view) {
      next.add()
      return false
    }
    async let written = error { try waiting.set(1, forKey: "a") }
    async let committed = durableError(of: waiting)
    try await blocking {
      _ = try node.next()
      _ = try node.next()
      node.hangUp()
    }
    #expect(try await written?.code == .timedOut)
    #expect(await committed?.code == .timedOut)
    #expect(next.value == 0 && store.dictionary.isEmpty)
    // The next write finds the end, and asks for the next service.
    #expect(try await error { try waiting.set(2, forKey: "a") }?.code == .closed)
    #expect(next.value == 1)
    try served.node.close()
  }

  @Test func `a write that a node which ended in order did not take goes to the next one`()
    async throws
  {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    let node = try ScriptedNode()
    let program = try await node.attach()
    let ended = KeyValueStore(
      service: program.node, view: program.store.view, longestReplacing: .seconds(60)
    ) { true }
    let changes = ended.changes
    let written = Task { try await blocking { try ended.set(1, forKey: "a") } }
    let committed = Task { try await ended.commit { $0.set(2, forKey: "b") } }
    try await blocking {
      _ = try node.next()
      _ = try node.next()
      try node.say(0, .goodbye(isYielding: false))
      node.hangUp()
    }
    try await eventually { program.node.hasEnded }
    try await served.run {
      try await owner.commit { $0.set("theirs", forKey: "c") }
      let next = try await served.attach()
      try await blocking {
        try next.node.open(
          ended.view, policy: .standard, reason: .externalChange, superseded: [])
        ended.replaceService(by: next.node)
      }
      try await written.value
      try await committed.value
      #expect(ended.dictionary == ["a": 1, "b": 2, "c": "theirs"])
      #expect(owner.dictionary == ended.dictionary)
      try await blocking { try ended.flush() }
      var heard = changes.makeAsyncIterator()
      #expect(
        await heard.next()
          == KeyValueStore.Change(reason: .externalChange, items: [.init("c", nil, "theirs")]))
      try await next.close()
    }
    try served.node.close()
  }

  @Test func `a write does not wait for a take-over that lasts too long`() async throws {
    let served = try await Served()
    let store = try served.node.store("com.example.test")
    try served.node.close()
    let end = DispatchSemaphore(value: 0)
    let hasBegun = Counter()
    let waiting = KeyValueStore(
      service: store.service, view: store.view, longestReplacing: .milliseconds(100)
    ) {
      hasBegun.add()
      return end.wait(timeout: .distantFuture) == .success
    }
    #expect(try await error { try waiting.set(1, forKey: "a") }?.code == .closed)
    #expect(hasBegun.value == 1)
    end.signal()
  }

  @Test func `a flush says once that accepted writes may be lost`() async throws {
    let served = try await Served()
    let store = try served.node.store("com.example.test")
    for saysGoodbye in [true, false] {
      let node = try ScriptedNode()
      let program = try await node.attach()
      async let written: Void = blocking { try program.store.set(1, forKey: "a") }
      try await blocking { try node.say(try node.next().id, .answer(.done)) }
      try await written
      try await blocking {
        if saysGoodbye { try node.say(0, .goodbye(isYielding: false)) }
        node.hangUp()
      }
      try await eventually { program.node.hasEnded }
      #expect((program.node.loss != nil) == !saysGoodbye)
      program.store.replaceService(by: store.service)
      let first = try await error { try program.store.flush() }
      #expect(first?.code == (saysGoodbye ? nil : .timedOut))
      #expect(try await error { try program.store.flush() } == nil)
    }
    try served.node.close()
  }

  /// The node says it once, so only the first store's flush threw.
  @Test func `each store's flush says that the node lost writes`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let other = KeyValueStore(service: program.node, view: program.store.view)
    async let written: Void = blocking { try program.store.set(1, forKey: "a") }
    try await blocking { try node.say(try node.next().id, .answer(.done)) }
    try await written
    let full = KithError(.diskFull, "full")
    async let first = error { try program.store.flush() }
    try await blocking { try node.say(try node.next().id, .failure(full)) }
    #expect(try await first?.code == .diskFull)
    async let second = error { try other.flush() }
    try await blocking { try node.say(try node.next().id, .answer(.done)) }
    #expect(try await second?.code == .diskFull)
    // The node is not asked again.
    for store in [program.store, other] {
      #expect(try await error { try store.flush() } == nil)
    }
    try await program.close()
  }

  @Test func `a node that breaks the protocol is left`() async throws {
    var unknown = ByteBuffer()
    unknown.writeInteger(UInt32(3))
    unknown.writeBytes([1, 2, 3])
    var tooLong = ByteBuffer()
    tooLong.writeInteger(UInt32(LocalReply.limit + 1))
    for bytes in [unknown, tooLong] {
      let ended = Counter()
      let node = try ScriptedNode()
      let program = try await node.attach(onEnd: { ended.add() })
      try await blocking { try node.say(bytes) }
      try await eventually { ended.value == 1 }
      #expect(program.node.hasEnded)
      try await program.close()
      #expect(ended.value == 1)
    }
  }

  @Test func `a question without an answer throws`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let store = program.store
    let questions: [@Sendable () throws -> Void] = [
      { _ = try store.usage }, { _ = try store.hiddenEntries }, { _ = try store.refusals },
      { _ = try store.takeRefusals() }, { _ = try store.syncReport },
      { _ = try store.history() },
    ]
    try await withThrowingTaskGroup(of: KithError?.self) { group in
      for question in questions { group.addTask { try await self.error(question) } }
      // The node says nothing.
      for try await error in group { #expect(error?.code == .timedOut) }
    }
    node.hangUp()
    // Its socket goes with it.
    try FileManager.default.removeItem(atPath: node.directory.child("control"))
    for question in questions {
      #expect(try await error(question)?.code == .closed)
    }
    await #expect(throws: KithError.self) {
      try await program.node.waitUntilComplete(.test, devices: nil, timeout: .milliseconds(50))
    }
    try await program.close()
  }

  @Test func `a question goes to the next service`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await owner.commit { $0.set("theirs", forKey: "c") }
    let node = try ScriptedNode()
    let program = try await node.attach()
    let store = KeyValueStore(service: program.node, view: program.store.view) { true }
    async let usage = blocking { try store.usage }
    try await blocking {
      _ = try node.next()
      node.hangUp()
    }
    try await eventually { program.node.hasEnded }
    store.replaceService(by: owner.service)
    #expect(try await usage.keys == 1)
    try served.node.close()
  }

  /// An error of the node ended the wait at once, as if there was nothing more to wait for.
  @Test func `a wait for other devices asks again after an error`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    async let report = program.store.waitUntilSynced(timeout: .seconds(60))
    try await blocking {
      // Each question has a connection of its own.
      for failure in [KithError(.control, "16 programs wait already."), nil] {
        let connection = try node.greetAnother()
        guard let call = try connection.next(LocalRequest.self),
          case .waitUntilSynced = call.call
        else { throw TimedOut() }
        let report = SyncReport(complete: [], incomplete: [], hasUnpublishedWrites: false)
        let content = failure.map { LocalReply.Content.failure($0) } ?? .answer(.syncReport(report))
        try connection.send(try LocalReply(id: call.id, content: content).frame())
      }
      let question = try node.next()
      guard case .syncReport = question.call else { throw TimedOut() }
      let report = SyncReport(complete: [.test], incomplete: [], hasUnpublishedWrites: false)
      try node.say(question.id, .answer(.syncReport(report)))
    }
    #expect(try await report.complete == [.test])
    try await program.close()
  }

  /// It waited 10 s more for an answer to its hello, and then 5 s for the report.
  @Test func `a wait for other devices ends in time at a stopped node`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    let begun = ContinuousClock.now
    let error = await #expect(throws: KithError.self) {
      try await program.store.waitUntilSynced(timeout: .milliseconds(100))
    }
    #expect(error?.code == .timedOut)
    #expect(ContinuousClock.now - begun < LocalLimits.connect)
    try await program.close()
  }

  @Test func `a connection that comes after its request was cancelled is closed`() async throws {
    let node = try ScriptedNode()
    let asking = Task { try await LocalClient(directory: node.directory.path).status() }
    let connection = try await blocking { try node.meetAnother() }
    asking.cancel()
    let error = await #expect(throws: KithError.self) { try await asking.value }
    #expect(error?.code == .cancelled)
    try await blocking {
      try node.greet(connection)
      #expect(try connection.isEnded)
    }
  }

  /// It waited for a change, which a node that was stopped does not tell.
  @Test func `statuses come again after one that was not answered`() async throws {
    let directory = try TestDirectory()
    let path = directory.child("a")
    try AccountsTests.open(path).close()
    let node = try ScriptedNode(at: path + "/local/control")
    async let opened = blocking { try AccountsTests.open(path) }
    try await blocking { try node.greet() }
    let accounts = try await opened
    async let told: Void = { for await _ in accounts.statusUpdates { break } }()
    try await blocking {
      // Each question has a connection of its own, and the first is closed.
      for isAnswered in [false, true] {
        let connection = try node.greetAnother()
        guard let call = try connection.next(LocalRequest.self), case .status = call.call else {
          throw TimedOut()
        }
        guard isAnswered else { continue }
        let status = try JSONEncoder().encode(NodeStatus(account: nil, device: nil))
        try connection.send(try LocalReply(id: call.id, content: .answer(.status(status))).frame())
      }
    }
    await told
    try await blocking { try accounts.close() }
  }

  @Test func `the other end of a socket is known`() throws {
    var ends: [Int32] = [-1, -1]
    #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { for end in ends { close(end) } }
    #expect(LocalSocket.isSameUser(descriptor: ends[0]))
    // A descriptor that is no socket has no other end.
    #expect(!LocalSocket.isSameUser(descriptor: -1))
  }

  /// The error of a body that blocks.
  private func error(_ body: @escaping @Sendable () throws -> Void) async throws -> KithError? {
    try await blocking {
      do {
        try body()
        return nil
      } catch let error as KithError {
        return error
      }
    }
  }

  private func lostAnswer(to call: NodeCall, on node: RemoteNode) async -> KithError? {
    do throws(KithError) {
      _ = try await node.perform(call) { _ in false }
      return nil
    } catch {
      return error
    }
  }

  private func durableError(of store: KeyValueStore) async -> KithError? {
    do throws(KithError) {
      try await store.commit { $0.set(3, forKey: "b") }
      return nil
    } catch {
      return error
    }
  }
}
