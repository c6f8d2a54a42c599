import Foundation
import Glibc
import KithCore
import KithTestSupport
import Logging
import NIOCore
import Testing

@testable import Kith

/// The node's side of the control socket, frame by frame.
@Suite(.timeLimit(.minutes(5)))
struct LocalProtocolTests {
  /// A program that attached to a node and opened the store.
  private static func attach(_ served: Served, _ policy: Policy = .standard) throws -> RawEnd {
    let end = try RawEnd(path: served.path + "/control")
    try end.hello()
    try end.send(2, .open(.test, policy))
    guard case .answer(.values) = try end.reply().content else { throw TimedOut() }
    return end
  }

  private static func write(
    _ key: String, _ value: PropertyListValue, isDurable: Bool = false
  ) throws -> NodeCall {
    let operations = [try KithCore.Operation.encoding(value, forKey: key)]
    return isDurable
      ? .commit(store: StoreIdentifier.test.rawValue, operations: operations)
      : .write(.test, operations, expecting: .none)
  }

  @Test func `the change that a write caused comes before its answer`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      try await blocking {
        let program = try Self.attach(served)
        // No more than the socket holds of so small frames, for the node reads none meanwhile.
        let ids = 3..<200
        // More than the sockets hold, so that changes and answers wait for this end to read.
        let padding = String(repeating: "x", count: 32_768)
        for index in 0..<40 { try owner.set(.string("\(index) \(padding)"), forKey: "theirs") }
        for id in ids {
          try program.send(id, try Self.write("k\(id)", 1, isDurable: id.isMultiple(of: 7)))
          if id.isMultiple(of: 3) { try owner.set(.integer(Int64(id)), forKey: "theirs") }
        }
        var seen: Set<String> = []
        var answered: Set<Int> = []
        while answered.count < ids.count {
          let reply = try program.reply()
          switch reply.content {
          case .changes(.test, let changes):
            for change in changes {
              seen.formUnion(change.values.map(\.key))
              #expect([.ownWrite, .externalChange].contains(change.reason))
            }
          case .answer(.done):
            #expect(seen.contains("k\(reply.id)"))
            answered.insert(reply.id)
          default: Issue.record("\(reply)")
          }
        }
        #expect(owner.dictionary.count == ids.count + 1)
      }
    }
    try served.node.close()
  }

  @Test func `a refusal has its numbers and changes nothing`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let program = try Self.attach(served, Policy(keys: 1))
        for (id, key) in [(3, "a"), (4, "b"), (5, "a")] {
          try program.send(id, try Self.write(key, .integer(Int64(id))))
        }
        var refused: [Int: KithError] = [:]
        var answers = 0
        while answers < 3 {
          let reply = try program.reply()
          if reply.id != 0 { answers += 1 }
          if case .failure(let error) = reply.content { refused[reply.id] = error }
        }
        #expect(refused.map(\.key) == [4])
        #expect(refused[4]?.code == .quotaExceeded)
        #expect(refused[4]?.message.contains("2 of 1 keys") == true)
      }
      let store = try served.node.store("com.example.test", policy: Policy(keys: 1))
      #expect(store.dictionary == ["a": 5])
    }
    try served.node.close()
  }

  @Test func `several transactions in a message keep their place among other writes`() async throws
  {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let program = try Self.attach(served)
        let each = try (1...3).map { try [KithCore.Operation].encoding([("k", .integer($0))]) }
        try program.send(3, try Self.write("k", 0))
        try program.send(4, .writeEach(.test, each))
        try program.send(5, try Self.write("k", 4))
        var values: [PropertyListValue] = []
        var answered: [Int] = []
        while answered.count < 3 {
          let reply = try program.reply()
          switch reply.content {
          case .changes(.test, let changes):
            values += changes.flatMap(\.values).compactMap { try? $0.value?.decoded() }
          case .answer:
            answered.append(reply.id)
            // Changes come before the answer.
            if reply.id == 4 { #expect(values == [0, 1, 2, 3]) }
          default: Issue.record("\(reply)")
          }
        }
        #expect(answered == [3, 4, 5] && values == [0, 1, 2, 3, 4])
        // More than are allowed.
        let tooMany = Array(repeating: each[0], count: LocalLimits.transactions + 1)
        try program.send(6, .writeEach(.test, tooMany))
        #expect(try program.isEnded)
      }
    }
    try served.node.close()
  }

  @Test func `a program that does not read costs little and holds up nobody`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let slow = try await blocking { try Self.attach(served) }
      let program = try await served.attach()
      for round in 1...400 {
        // 6 MB of changes in all, of which the sockets hold a few hundred kB.
        let value = PropertyListValue.string("\(round) " + String(repeating: "x", count: 16_384))
        try await blocking { try owner.set(value, forKey: "k\(round % 3)") }
        if round.isMultiple(of: 50) {
          try await eventually { program.store.dictionary == owner.dictionary }
        }
      }
      // It gets joined changes in the end, which lead to the shown values.
      let count = try await blocking {
        var shown: [Key: PropertyListValue] = [:]
        var count = 0
        while shown != owner.dictionary {
          guard case .changes(_, let changes) = try slow.reply().content else { continue }
          count += changes.count
          for change in changes { _ = change.change(of: &shown) }
        }
        return count
      }
      #expect(count < 4 * ChangeBuffer.limit)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `a program that takes no answers is not read`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let program = try Self.attach(served)
        let store = try served.node.store("com.example.test")
        var limit = timeval(tv_sec: 2, tv_usec: 0)
        setsockopt(
          program.descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit,
          socklen_t(MemoryLayout<timeval>.size))
        // As long as the sockets take frames: a node that went on reading would take them all.
        let padding = String(repeating: "x", count: 4_000)
        var sent = 0
        while sent < 5_000 {
          let call = try Self.write("k", .string("\(sent) \(padding)"))
          do {
            try program.send(3 + sent, call)
          } catch {
            break
          }
          sent += 1
        }
        #expect(sent < 5_000)
        let number = store.value(forKey: "k").flatMap { value -> Int? in
          guard case .string(let text) = value else { return nil }
          return Int(text.prefix { $0 != " " })
        }
        #expect((number ?? 0) < 1_000)
      }
    }
    try served.node.close()
  }

  @Test func `bytes that are no request end the connection`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        var garbage = ByteBuffer()
        garbage.writeInteger(UInt32(2))
        garbage.writeBytes([0xff, 0xff])
        let tooLong = ByteBuffer(integer: UInt32(LocalRequest.limit + 1))
        let json = ByteBuffer(string: #"{"id":1,"operation":"status","version":1}"# + "\n")
        for bytes in [garbage, tooLong, json] {
          let connected = try RawEnd(path: served.path + "/control")
          try connected.send(bytes)
          #expect(try connected.isEnded)
          let attached = try Self.attach(served)
          try attached.send(bytes)
          #expect(try attached.isEnded)
        }
        // A word before hello, and a second hello.
        let early = try RawEnd(path: served.path + "/control")
        try early.send(1, .status)
        #expect(try early.isEnded)
        let twice = try Self.attach(served)
        try twice.send(3, .hello(version: LocalLimits.version, attaches: true))
        #expect(try twice.isEnded)
      }
    }
    try served.node.close()
  }

  /// The node closed the connection, and with it all other stores of the program.
  @Test func `a write to a store that was not opened is refused alone`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let program = try RawEnd(path: served.path + "/control")
        try program.hello()
        let write = try Self.write("a", 1)
        for (id, call) in [(2, write), (3, NodeCall.writeEach(.test, [[]]))] {
          try program.send(id, call)
          let reply = try program.reply()
          guard reply.id == id, case .failure(let error) = reply.content else { throw TimedOut() }
          #expect(error.code == .control)
        }
        try program.send(4, .open(.test, .standard))
        guard case .answer(.values) = try program.reply().content else { throw TimedOut() }
        try program.send(5, write)
        while true {
          let reply = try program.reply()
          if case .changes = reply.content { continue }
          guard reply.id == 5, case .answer(.done) = reply.content else { throw TimedOut() }
          break
        }
      }
    }
    try served.node.close()
  }

  /// The job that tells the progress lasts as long as the connection.
  @Test func `a connection follows the progress once`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        func answer(_ end: RawEnd, _ id: Int) throws -> LocalReply.Content {
          try end.send(id, .followProgress)
          while true {
            let reply = try end.reply()
            if reply.id == id { return reply.content }
          }
        }
        let program = try Self.attach(served)
        guard case .answer(.done) = try answer(program, 3) else { throw TimedOut() }
        guard case .failure(let error) = try answer(program, 4) else { throw TimedOut() }
        #expect(error.code == .control)
        // Connections for short requests are counted apart, and may not last.
        let short = try RawEnd(path: served.path + "/control")
        try short.hello(attaches: false)
        guard case .failure = try answer(short, 2) else { throw TimedOut() }
      }
    }
    try served.node.close()
  }

  /// At thousands of commits a second, their timeouts would be hundreds of thousands of timers.
  @Test func `an answered commit leaves no timer`() async throws {
    let served = try await Served()
    try await served.run {
      let program = try await served.attach()
      for number in 0..<120 {
        try await program.store.commit { $0.set(.integer(Int64(number)), forKey: "key") }
      }
      // All programs of this process share the loop.
      let loop = String(reflecting: RemoteNode.loop.next())
      let match = loop.firstMatch(of: /scheduledTasks = PriorityQueue\(count: (\d+)\)/)
      let count = try #require(match.flatMap { Int($0.1) })
      #expect(count < 100)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `another version is told so`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let end = try RawEnd(path: served.path + "/control")
        try end.send(1, .hello(version: LocalLimits.version + 1, attaches: false))
        guard case .failure(let error) = try end.reply().content else { throw TimedOut() }
        #expect(error.code == .control)
        #expect(error.message.contains("same version"))
      }
    }
    try served.node.close()
  }

  @Test func `attached connections are bounded and take no room from commands`() async throws {
    let served = try await Served()
    try await served.run {
      var programs: [Program] = []
      for _ in 0..<LocalLimits.attachedConnections { programs.append(try await served.attach()) }
      let error = await #expect(throws: KithError.self) { try await served.attach() }
      #expect(error?.code == .control && error?.message.contains("attached already") == true)
      try await served.client.write([("key", 1)], in: "com.example.test")
      try await eventually { programs.allSatisfy { $0.store.value(forKey: "key") == 1 } }
      try await programs.removeLast().close()
      try await eventually {
        guard let program = try? await served.attach() else { return false }
        programs.append(program)
        return true
      }
      for program in programs { try await program.close() }
    }
    try served.node.close()
  }

  @Test func `a connection waits for its turn`() async throws {
    let served = try await Served()
    try await served.run {
      // Connections that say nothing take all the room there is.
      let silent = try await blocking {
        try (0..<LocalLimits.connections).map { _ in try RawEnd(path: served.path + "/control") }
      }
      let isAnswered = Counter()
      async let waiting: Void = {
        _ = try await served.client.status()
        isAnswered.add()
      }()
      // More than may be short connections at once.
      async let programs = withThrowingTaskGroup(of: Program.self) { group in
        for _ in 0...LocalLimits.connections { group.addTask { try await served.attach() } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      try await blocking {
        #expect(isAnswered.value == 0)
        for end in silent { shutdown(end.descriptor, Int32(SHUT_RDWR)) }
      }
      try await waiting
      for program in try await programs { try await program.close() }
    }
    try served.node.close()
  }

  /// Connections that have their turn end together with those that wait for theirs.
  @Test func `connections that go as their turn comes leave their room`() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let program = try Self.attach(served)
        var silent = try (0..<3 * LocalLimits.connections).map { _ in
          try RawEnd(path: served.path + "/control")
        }
        // Until all are accepted.
        for id in 3...4 {
          try program.send(id, Self.write("k", 1))
          while try program.reply().id != id {}
        }
        let write = try Self.write("k", 2)
        try served.node.engine.state.withLock { _ in
          try program.send(5, write)
          // The server has read it, and now waits for the engine.
          try eventuallyBlocking("the write to be read", every: 1) {
            var unread: Int32 = 0
            return ioctl(program.descriptor, UInt(TIOCOUTQ), &unread) == 0 && unread == 0
          }
          while !silent.isEmpty { silent.removeFirst() }
        }
        // All the room there is.
        var short: [RawEnd] = []
        for _ in 0..<LocalLimits.connections {
          short.append(try RawEnd(path: served.path + "/control"))
          try short[short.count - 1].hello(attaches: false)
        }
      }
    }
    try served.node.close()
  }

  @Test func `a node that ends says so, with all durable`() async throws {
    let served = try await Served()
    let program = try await served.run {
      let program = try await served.attach()
      try await blocking { for index in 0..<20 { try program.store.set(1, forKey: "k\(index)") } }
      return program
    }
    try await eventually { program.node.hasEnded }
    #expect(program.node.loss == nil)
    #expect(try served.node.store("com.example.test").dictionary.count == 20)
    try served.node.close()
  }

  /// Closing a connection drops the bytes that its socket has not taken yet.
  @Test func `a goodbye reaches a program that still reads what came before`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    let control = served.path + "/control"
    let hasHeard = try await served.run {
      try await blocking {
        let program = try Self.attach(served)
        // More than the sockets hold.
        let padding = String(repeating: "x", count: 32_768)
        for index in 0..<40 { try owner.set(.string("\(index) \(padding)"), forKey: "theirs") }
        return Task<Bool, any Error> {
          try await blocking {
            // It reads once the node takes no more connections, because it ends.
            try eventuallyBlocking("the node to take no more connections", every: 1) {
              (try? RawEnd(path: control)) == nil
            }
            // The node waits a second for its reader.
            try program.takeAll()
            while let reply = try program.next(LocalReply.self) {
              if case .goodbye = reply.content { return true }
            }
            return false
          }
        }
      }
    }
    #expect(try await hasHeard.value)
    try served.node.close()
  }

  /// As a `kith watch` in a terminal that was suspended does.
  @Test func `a program that stops reading what it watches does not keep its node from ending`()
    async throws
  {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    let control = served.path + "/control"
    let watching = try await served.run {
      try await blocking {
        let program = try RawEnd(path: control)
        try program.hello(attaches: false)
        try program.send(2, .watch(store: "com.example.test"))
        guard case .event(.values) = try program.reply().content else { throw TimedOut() }
        // More than the sockets hold.
        try owner.set(.string(String(repeating: "x", count: 800_000)), forKey: "theirs")
        var byte: UInt8 = 0
        #expect(recv(program.descriptor, &byte, 1, Int32(MSG_PEEK)) == 1)
        return program
      }
    }
    try served.node.close()
    try await blocking { try watching.takeAll() }
  }

  /// At the return of `main`, for instance.
  @Test func `a process that ends without closing its node says so`() async throws {
    let served = try await Served()
    let path = served.path + "/other"
    let server = LocalServer(node: served.node, path: path, logger: Logger(label: "test"))
    let running = Task { try await server.run() }
    try await eventually { (try? RawEnd(path: path)) != nil }
    try await blocking {
      let end = try RawEnd(path: path)
      try end.hello()
      try end.send(2, .open(.test, .standard))
      guard case .answer(.values) = try end.reply().content else { throw TimedOut() }
      try end.send(3, try Self.write("k", 1))
      while try end.reply().id != 3 {}
      server.endWithProcess()
      guard case .goodbye = try end.reply().content else { throw TimedOut() }
    }
    running.cancel()
    try await running.value
    try served.node.close()
  }
}
