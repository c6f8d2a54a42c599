import Foundation
import KithCore
import KithTestSupport
import Testing

@testable import Kith

/// Programs that are attached to a real node.
@Suite(.timeLimit(.minutes(5)))
struct AttachedStoreTests {
  @Test func programsOfOneHostHearEachOther() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await owner.commit { $0.set("before", forKey: "old") }
    try await served.run {
      let first = try await served.attach()
      let second = try await served.attach()
      #expect(first.store.dictionary == owner.dictionary)
      let stores = [owner, first.store, second.store]
      var heard = stores.map { $0.changes.makeAsyncIterator() }
      for round in 0..<2 {
        for (index, store) in stores.enumerated() {
          let key = "\(round) \(index)"
          let new = PropertyListValue.integer(Int64(index))
          try await blocking { try store.set(new, forKey: key) }
          #expect(store.value(forKey: key) == new, "a write shows at once")
          try await eventually { stores.allSatisfy { $0.value(forKey: key) == new } }
          // The writer gets no change: its next change is another's write.
          for other in stores.indices where other != index {
            let change = await heard[other].next()
            #expect(
              change == KeyValueStore.Change(reason: .externalChange, items: [.init(key, nil, new)])
            )
          }
        }
      }
      // A transaction is one change, and durable on return.
      try await first.store.commit {
        $0.set("a", forKey: "x")
        $0.removeValue(forKey: "old")
      }
      let whole = KeyValueStore.Change(
        reason: .externalChange, items: [.init("old", "before", nil), .init("x", nil, "a")])
      #expect(await heard[0].next() == whole)
      #expect(await heard[2].next() == whole)
      try await first.close()
      try await second.close()
    }
    try served.node.close()
  }

  @Test func theCommandLineIsAnotherProgram() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let program = try await served.attach()
      var heard = owner.changes.makeAsyncIterator()
      var attachedHeard = program.store.changes.makeAsyncIterator()
      let watched = Watched()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          try? await served.client.watch("com.example.test") { _ in
            watched.state.withLock { $0.isReady = true }
          } onChange: { change in
            watched.state.withLock { $0.changes.append(change) }
          }
        }
        try await eventually { watched.state.withLock { $0.isReady } }
        try await served.client.write([("key", 1)], in: "com.example.test")
        let told = KeyValueStore.Change(reason: .externalChange, items: [.init("key", nil, 1)])
        #expect(await heard.next() == told)
        #expect(await attachedHeard.next() == told)
        // A watching program hears which writes are this device's.
        try await eventually { watched.state.withLock { !$0.changes.isEmpty } }
        #expect(watched.state.withLock { $0.changes.first?.reason } == .ownWrite)
        group.cancelAll()
      }
      try await program.close()
    }
    try served.node.close()
  }

  @Test func aWriteThatDoesNotFitThrowsWhatTheNodeSays() async throws {
    let served = try await Served()
    let policy = Policy(totalBytes: 100, keys: 2, keyBytes: 4, valueBytes: 60)
    try await served.run {
      let program = try await served.attach(policy)
      let store = program.store
      try await blocking {
        try store.set("1", forKey: "a")
        try store.set("2", forKey: "b")
      }
      for (value, key, code) in [
        ("x", "long key", KithError.Code.invalidKey),
        (String(repeating: "x", count: 61), "a", .valueTooLarge), ("x", "c", .quotaExceeded),
      ] {
        let error = await #expect(throws: KithError.self) {
          try await blocking { try store.set(.string(value), forKey: key) }
        }
        #expect(error?.code == code)
        #expect(error?.key?.text == key)
        #expect(code != .quotaExceeded || error?.message.contains("3 of 2 keys") == true)
      }
      #expect(store.dictionary == ["a": "1", "b": "2"])
      try await blocking { try store.flush() }
      let owner = try served.node.store("com.example.test", policy: policy)
      let usage = try await blocking { try store.usage }
      #expect(try usage == owner.usage)
      #expect(usage.keys == 2)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func aStoreIsBegunByAttachingAndKeepsItsLimits() async throws {
    let served = try await Served()
    let policy = Policy(keys: 3)
    try await served.run {
      let program = try await served.attach(policy)
      #expect(try await served.node.status().stores.map(\.usage.policy.keys) == [3])
      let error = await #expect(throws: KithError.self) { try await served.attach() }
      #expect(error?.code == .invalidPolicy)
      let refused = #expect(throws: KithError.self) {
        try served.node.store("com.example.test")
      }
      #expect(refused?.code == .invalidPolicy)
      let beyond = await #expect(throws: KithError.self) {
        try await served.attach(Policy(keys: Policy.maximum.keys + 1))
      }
      #expect(beyond?.code == .invalidPolicy)
      try await program.close()
    }
    try served.node.close()
    let nobody = await #expect(throws: KithError.self) { try await served.attach() }
    #expect(nobody?.code == .notRunning)
  }

  @Test func aFullStoreOfTheLargestKeysIsShown() async throws {
    let served = try await Served()
    let policy = Policy(totalBytes: 4 << 20, keys: 3_000, keyBytes: 1_024)
    let owner = try served.node.store("com.example.test", policy: policy)
    let key = String(repeating: "\u{1}", count: 1_000)
    try await owner.commit {
      for index in 0..<400 { $0.set(.integer(Int64(index)), forKey: "\(key)\(index)") }
    }
    try await served.run {
      let program = try await served.attach(policy)
      #expect(program.store.dictionary == owner.dictionary)
      // A change of everything shows at once.
      let changes = program.store.changes
      try await owner.commit {
        for index in 0..<400 { $0.set(.string("new"), forKey: "\(key)\(index)") }
      }
      var heard = changes.makeAsyncIterator()
      #expect(await heard.next()?.items.count == 400)
      #expect(program.store.dictionary == owner.dictionary)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func whatIsAskedIsWhatTheNodeSays() async throws {
    let nodes = try await Nodes()
    try nodes.first.close()
    let served = try await Served()
    try await served.run {
      try await nodes.join("away", by: served.node).close()
      let program = try await served.attach()
      try await blocking {
        try program.store.set(1, forKey: "a")
        try program.store.flush()
      }
      let owner = try served.node.store("com.example.test")
      try await blocking {
        let report = try program.store.syncReport
        let (hidden, refusals) = (try program.store.hiddenEntries, try program.store.refusals)
        let taken = try program.store.takeRefusals()
        let seenByOwner = try owner.syncReport
        #expect(report == seenByOwner && report.incomplete.count == 1)
        #expect(hidden.isEmpty && refusals.isEmpty && taken.isEmpty)
      }
      let report = try await program.store.waitUntilSynced(timeout: .milliseconds(50))
      #expect(!report.isComplete)
      try await program.close()
    }
    try served.node.close()
  }

  @Test func theViewsOfBusyProgramsBecomeOneAndChangesReplay() async throws {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try await served.run {
      let programs = [try await served.attach(), try await served.attach()]
      let stores = [owner] + programs.map(\.store)
      let replayed = stores.map { store in
        let (values, changes) = store.snapshotAndChanges()
        return Task {
          var view = values
          for await change in changes {
            for item in change.items {
              guard view[item.key] == item.old else { return [:] as [Key: PropertyListValue] }
              view[item.key] = item.new
            }
            if view["end"] != nil { break }
          }
          return view
        }
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for (index, store) in stores.enumerated() {
          group.addTask {
            try await blocking {
              var random = Random(state: UInt64(index) &+ 40)
              for step in 0..<300 {
                let key = "k\(random.next(4))"
                if random.next(4) == 0 {
                  try store.removeValue(forKey: key)
                } else {
                  try store.set([.string("\(index)"), .integer(Int64(step))], forKey: key)
                }
                if random.next(20) == 0 { try store.flush() }
              }
              try store.flush()
            }
          }
        }
        try await group.waitForAll()
      }
      try await eventually { stores.allSatisfy { $0.dictionary == owner.dictionary } }
      try owner.set(true, forKey: "end")
      for task in replayed { #expect(await task.value == owner.dictionary) }
      for program in programs { try await program.close() }
    }
    try served.node.close()
  }
}

extension KeyValueStore.Change.Item {
  init(_ key: String, _ old: PropertyListValue?, _ new: PropertyListValue?) {
    self.init(key: Key(key), old: old, new: new)
  }
}
