import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import Kith

/// Transactions that go to the node in one message.
@Suite("Several transactions at once", .timeLimit(.minutes(5)))
struct WriteEachTests {
  private static func sets(
    _ pairs: [(String, PropertyListValue)]
  ) throws -> [[KithCore.Operation]] {
    try pairs.map { try .encoding([($0, $1)]) }
  }

  @Test func `each is refused alone, in order, with and without a node in between`() async throws {
    let served = try await Served()
    let policy = Policy(keys: 2)
    let owner = try served.node.store("com.example.test", policy: policy)
    let transactions = try Self.sets([("a", 1), ("b", 2), ("c", 3), ("a", 4), ("", 5), ("b", 6)])
    try await served.run {
      let program = try await served.attach(policy)
      for store in [owner, program.store] {
        let errors = try await blocking { store.write(each: transactions) }
        #expect(errors.map { $0?.code } == [nil, nil, .quotaExceeded, nil, .invalidKey, nil])
        #expect(store.dictionary == ["a": 4, "b": 6])
        try await blocking { try store.flush() }
        #expect(owner.dictionary == store.dictionary)
        try await owner.commit { $0.removeValue(forKey: "a") }
        try await eventually { program.store.value(forKey: "a") == nil }
      }
      #expect(try await blocking { program.store.write(each: []) }.isEmpty)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `durable ones are refused alone too, and only a value creates a store`() async throws {
    let served = try await Served()
    try await served.run {
      let nodes: [any NodeAccess] = [served.node, served.client]
      for (number, node) in nodes.enumerated() {
        let store = "com.example.new\(number)"
        var deep: PropertyListValue = 1
        for _ in 0..<65 { deep = [deep] }
        let none = try await node.write(each: [[("a", nil)], [("", 1)]], in: store)
        #expect(none.map { $0?.code } == [nil, .invalidKey])
        #expect(try await !node.status().stores.contains { $0.identifier.rawValue == store })
        let errors = try await node.write(
          each: [[("", 1)], [("deep", deep)], [("a", 1)], [("b", 2), ("", 3)], [("c", 4)]],
          in: store)
        #expect(
          errors.map { $0?.code } == [.invalidKey, .unsupportedValue, nil, .invalidKey, nil])
        #expect(try await node.values(in: store) == ["a": 1, "c": 4])
        let more = try await node.write(each: [[("a", nil)], [("", 1)]], in: store)
        #expect(more.map { $0?.code } == [nil, .invalidKey])
        #expect(try await node.values(in: store) == ["c": 4])
      }
      let one: [(key: String, value: PropertyListValue?)] = [("a", 1)]
      let many = Array(repeating: one, count: 65)
      await #expect(throws: KithError.self) {
        try await served.client.write(each: many, in: "com.example.new0")
      }
    }
    try served.node.close()
  }

  @Test func `more than a message holds go in several`() async throws {
    let served = try await Served()
    let large = PropertyListValue.data(Data(count: 400_000))
    let tooLarge = PropertyListValue.data(Data(count: 3 << 20))
    let policy = Policy(totalBytes: 2 << 20)
    var pairs = (0..<300).map { ("k\($0)", $0 < 3 ? large : 1) }
    pairs[150].1 = tooLarge
    let transactions = try Self.sets(pairs)
    var rest = transactions[...]
    while !rest.isEmpty {
      let message = rest.message
      #expect((1...LocalLimits.transactions).contains(message.count))
      let bytes = message.joined().reduce(0) { $0 + ($1.value?.size ?? 0) }
      #expect(bytes < LocalLimits.transactionBytes || message.count == 1)
      rest = rest.dropFirst(message.count)
    }
    try await served.run {
      let program = try await served.attach(policy)
      let errors = try await blocking { program.store.write(each: transactions) }
      #expect(errors.count == 300)
      let refused = errors.indices.filter { errors[$0] != nil }
      #expect(refused == [150] && errors[150]?.code == .valueTooLarge)
      #expect(program.store.dictionary.count == 299)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `of a lost message nothing is written twice, and the rest goes to the next service`()
    async throws
  {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    let node = try ScriptedNode()
    let program = try await node.attach()
    let store = KeyValueStore(service: program.node, view: program.store.view) { true }
    let count = LocalLimits.transactions
    // Three messages: accepted, lost, and not sent any more.
    let transactions = try Self.sets((0..<(2 * count + 1)).map { ("k\($0)", 1) })
    async let written = blocking { store.write(each: transactions) }
    try await blocking {
      let first = try node.next()
      guard case .writeEach(.test, let sent) = first.call else { throw TimedOut() }
      #expect(sent == Array(transactions.prefix(count)))
      try node.say(first.id, .answer(.written(count: count, refused: [:])))
      _ = try node.next()
      node.hangUp()
    }
    try await eventually { program.node.hasEnded }
    store.replaceService(by: owner.service)
    let errors = try await written
    #expect(errors.prefix(count).allSatisfy { $0 == nil })
    #expect(errors.dropFirst(count).prefix(count).allSatisfy { $0?.code == .timedOut })
    #expect(errors.count == 2 * count + 1 && errors[2 * count] == nil)
    #expect(owner.dictionary == [Key("k\(2 * count)"): 1])
    try served.node.close()
  }

  @Test func `those that a node did not perform before it ended go to the next one`() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    let node = try ScriptedNode()
    let program = try await node.attach()
    let store = KeyValueStore(service: program.node, view: program.store.view) { true }
    let transactions = try Self.sets([("a", 1), ("b", 2), ("c", 3), ("d", 4)])
    let full = KithError(.quotaExceeded, "full", key: "b")
    async let written = blocking { store.write(each: transactions) }
    try await blocking {
      try node.say(try node.next().id, .answer(.written(count: 2, refused: [1: full])))
      guard case .writeEach(.test, let sent) = try node.next().call else { throw TimedOut() }
      #expect(sent == Array(transactions.suffix(2)))
      try node.say(0, .goodbye(isYielding: false))
      node.hangUp()
    }
    try await eventually { program.node.hasEnded }
    store.replaceService(by: owner.service)
    let errors = try await written
    #expect(errors.map { $0?.code } == [nil, .quotaExceeded, nil, nil])
    #expect(owner.dictionary == ["c": 3, "d": 4])
    try served.node.close()
  }

  @Test func `a node that counts wrong is not believed`() async throws {
    let node = try ScriptedNode()
    let program = try await node.attach()
    for count in [0, 3, -1] {
      let transactions = try Self.sets([("a", 1), ("b", 2)])
      async let written = blocking { program.store.write(each: transactions) }
      try await blocking {
        try node.say(try node.next().id, .answer(.written(count: count, refused: [:])))
      }
      let errors = try await written
      #expect(errors.map { $0?.code } == [.control, .control])
    }
    try await program.close()
  }
}
