import Foundation
import Glibc
import KithCore
import NIOCore
import Testing

@testable import Kith

/// The node's side, line by line.
@Suite(.timeLimit(.minutes(5)))
struct AttachProtocolTests {
  /// A connection that attaches and is read by hand.
  final class Line: @unchecked Sendable {
    // One test uses it, one call after the other.
    var stream: ControlStream
    private let path: String
    let first: ControlResponse

    init(_ served: Served, policy: Policy = .standard) throws {
      path = served.path + "/control"
      var request = ControlRequest(id: 1)
      request.operation = .attach
      request.store = StoreIdentifier.test.rawValue
      request.policy = ControlPolicy(policy)
      (stream, first) = try ControlStream.open(path, request, until: Self.deadline)
    }

    deinit { stream.close() }

    private static var deadline: SuspendingClock.Instant { .now.advanced(by: .seconds(60)) }

    func send(_ bytes: ByteBuffer) throws {
      var unsent = bytes
      while try !ControlStream.send(&unsent, to: stream.descriptor) {
        guard stream.wait(for: POLLOUT, until: Self.deadline) else { throw TimedOut() }
      }
    }

    func commit(_ id: UInt64, _ key: String, _ value: PropertyListValue?) throws {
      try send(
        AttachedStore.line([.encoding(value, forKey: key)], id: id))
    }

    func next() throws -> ControlResponse { try stream.nextResponse(path, until: Self.deadline) }

    /// Whether the node has closed the connection.
    var isEnded: Bool {
      do {
        while true { _ = try next() }
      } catch {
        return (error as? KithError)?.code == .control
      }
    }
  }

  @Test func whatACommitCausedComesBeforeItsAnswer() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      try await blocking {
        let line = try Line(served)
        let ids = UInt64(2)..<300
        // More than the sockets hold, so that changes and answers wait for this end to read.
        let padding = String(repeating: "x", count: 32_768)
        for index in 0..<40 { try owner.set(.string("\(index) \(padding)"), forKey: "theirs") }
        for id in ids {
          try line.commit(id, "k\(id)", 1)
          if id.isMultiple(of: 3) { try owner.set(.integer(Int64(id)), forKey: "theirs") }
        }
        while owner.value(forKey: "k\(ids.upperBound - 1)") == nil { usleep(1_000) }
        try owner.flush()
        var seen: Set<String> = []
        var answered = ids.lowerBound
        while answered < ids.upperBound {
          let response = try line.next()
          if let change = response.change {
            for entry in change.new { seen.insert(entry.key) }
            #expect(change.old.isEmpty)
            #expect(["ownWrite", "serverChange"].contains(change.reason))
          } else {
            #expect(response.id == answered && response.error == nil, "answers come in order")
            #expect(seen.contains("k\(answered)"))
            answered += 1
          }
        }
        #expect(owner.dictionary.count == ids.count + 1)
      }
    }
    try served.node.close()
  }

  @Test func aRefusalHasItsNumbersAndChangesNothing() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let line = try Line(served, policy: Policy(keys: 1))
        try line.commit(2, "a", 1)
        try line.commit(3, "b", 2)
        try line.commit(4, "a", 3)
        var answers: [ControlResponse] = []
        while answers.count < 3 {
          let response = try line.next()
          if response.change == nil { answers.append(response) }
        }
        #expect(answers.map(\.id) == [2, 3, 4])
        #expect(answers.map { $0.error?.code } == [nil, "quotaExceeded", nil])
        #expect(answers[1].error?.error.quota?.askedKeys == 2)
      }
      let store = try served.node.store("com.example.test", policy: Policy(keys: 1))
      #expect(store.dictionary == ["a": 3])
    }
    try served.node.close()
  }

  @Test func aProgramThatDoesNotReadCostsLittleAndHoldsUpNobody() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let slow = try await blocking { try Line(served) }
      let program = try await served.attach()
      let rounds = 400
      for round in 1...rounds {
        // 6 MB of changes in all, of which the sockets hold a few hundred kB.
        let value = PropertyListValue.string("\(round) " + String(repeating: "x", count: 16_384))
        try await blocking { try owner.set(value, forKey: "k\(round % 3)") }
        if round.isMultiple(of: 50) {
          try await until { program.store.dictionary == owner.dictionary }
        }
      }
      // What it gets in the end is joined, and leads to what is shown.
      let (count, shown) = try await blocking {
        var shown: [Key: PropertyListValue] = [:]
        var count = 0
        while shown != owner.dictionary {
          count += 1
          for entry in try slow.next().change?.new ?? [] {
            shown[Key(entry.key)] = try entry.value.map(ControlEntry.value)
          }
        }
        return (count, shown)
      }
      #expect(count < 4 * ChangeBuffer.limit)
      #expect(shown == owner.dictionary)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func aProgramThatTakesNoAnswersIsNotRead() async throws {
    let served = try await Served()
    try await served.run {
      try await blocking {
        let line = try Line(served)
        let store = try served.node.store("com.example.test")
        var sent = 0
        // As long as the sockets take lines.
        let padding = String(repeating: "x", count: 4_000)
        try line.fill { id in
          sent += 1
          return try AttachedStore.line(
            [.encoding(.string("\(id) \(padding)"), forKey: "k")], id: id)
        }
        let number = store.value(forKey: "k").flatMap { value -> Int? in
          guard case .string(let text) = value else { return nil }
          return Int(text.prefix { $0 != " " })
        }
        #expect((number ?? 0) - 1 <= ControlLimits.unansweredCommits + 200)
        #expect(sent < 5_000)
      }
    }
    try served.node.close()
  }

  @Test func whatIsNoCommitEndsTheConnection() async throws {
    let served = try await Served()
    try await served.run {
      for text in [
        "no json", #"{"id":2,"operation":"status","version":1}"#,
        #"{"id":1,"operation":"commit","version":1,"writes":[]}"#,
        #"{"id":0,"operation":"commit","version":1,"writes":[]}"#,
        #"{"id":2,"operation":"commit","version":2,"writes":[]}"#,
        #"{"id":2,"operation":"commit","store":"other","version":1,"writes":[]}"#,
      ] {
        let isEnded = try await blocking {
          let line = try Line(served)
          try line.send(ByteBuffer(string: text + "\n"))
          return line.isEnded
        }
        #expect(isEnded, "\(text)")
      }
      // What is malformed in a commit is an answer.
      try await blocking {
        let line = try Line(served)
        try line.send(
          ByteBuffer(
            string: #"{"id":2,"operation":"commit","version":1,"writes":[{"key":"a","value":"?"}]}"#
              + "\n"))
        #expect(try line.next().error?.code == "control")
        try line.commit(3, "a", 1)
        while try line.next().id != 3 {}
      }
    }
    try served.node.close()
  }

  @Test func attachedConnectionsAreBoundedAndTakeNoRoomFromCommands() async throws {
    let served = try await Served()
    try await served.run {
      var programs: [Program] = []
      for _ in 0..<ControlLimits.attachedConnections { programs.append(try await served.attach()) }
      let error = await #expect(throws: KithError.self) { try await served.attach() }
      #expect(error?.code == .control && error?.message.contains("attached already") == true)
      try await served.client.write([("key", 1)], in: "com.example.test")
      try await until { programs.allSatisfy { $0.store.value(forKey: "key") == 1 } }
      try await programs.removeLast().close()
      try await until {
        guard let program = try? await served.attach() else { return false }
        programs.append(program)
        return true
      }
      for program in programs { try await program.close() }
    }
    try served.node.close()
  }

  @Test func aNodeThatIsBusyIsAskedAgain() async throws {
    let served = try await Served()
    let path = served.path + "/control"
    try await served.run {
      try await blocking {
        var request = ControlRequest(id: 1)
        request.operation = .version
        // Connections that say nothing take all the room there is.
        var silent: [Int32] = []
        defer { for descriptor in silent { close(descriptor) } }
        while silent.count < ControlLimits.connections {
          if let descriptor = try ControlSocket.connect(to: path) { silent.append(descriptor) }
        }
        var refusal: KithError?
        while refusal == nil {
          do throws(KithError) {
            // Until all of them were counted, there may be room.
            try ControlStream.open(path, request, until: .now.advanced(by: .milliseconds(300)))
              .stream.close()
          } catch {
            refusal = error
          }
        }
        #expect(refusal?.code == .timedOut)
        for descriptor in silent { close(descriptor) }
        silent = []
        let (stream, first) = try ControlStream.open(
          path, request, until: .now.advanced(by: .seconds(60)))
        #expect(first.version == ControlLimits.version)
        stream.close()
      }
    }
    try served.node.close()
  }

  @Test func programsThatComeAtOnceAllGetIn() async throws {
    let served = try await Served()
    try await served.run {
      let programs = try await withThrowingTaskGroup(of: Program.self) { group in
        // More than may be short connections at once.
        for _ in 0..<ControlLimits.connections * 3 { group.addTask { try await served.attach() } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      for program in programs { try await program.close() }
    }
    try served.node.close()
  }
}

extension AttachProtocolTests.Line {
  /// Sends lines until the socket has taken none for a second.
  func fill(_ line: (UInt64) throws -> ByteBuffer) throws {
    var id: UInt64 = 2
    // A node that goes on reading would never end this.
    while id < 6_000 {
      var unsent = try line(id)
      let deadline = SuspendingClock.now.advanced(by: .seconds(2))
      while try !ControlStream.send(&unsent, to: stream.descriptor) {
        guard stream.wait(for: POLLOUT, until: deadline) else { return }
      }
      id += 1
    }
  }
}
