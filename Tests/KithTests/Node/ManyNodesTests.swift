import Foundation
import Kith
import Testing

/// More nodes than are all connected to all.
@Suite(.timeLimit(.minutes(5)))
struct ManyNodesTests {
  @Test func `a change on one of ten nodes is on all, and it knows`() async throws {
    let nodes = try await Nodes()
    let first = nodes.first
    let others = try await running(first) {
      var others: [Node] = []
      for number in 1..<10 { others.append(try await nodes.join("node\(number)", by: first)) }
      return others
    }
    try await running(all: [first] + others) {
      for node in others { try await node.meetsPeer() }
      let writer = others[4]
      let one = try writer.store("com.example.test")
      try one.set("dark", forKey: "theme")
      let report = try await one.waitUntilSynced(timeout: .seconds(60))
      #expect(report.isComplete)
      #expect(report.complete.count == 9)
      for node in [first] + others {
        let store = try node.store("com.example.test")
        #expect(store.value(forKey: "theme") == "dark")
      }
    }
    for node in [first] + others { try node.close() }
  }
}
