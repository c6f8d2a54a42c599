import Kith
import KithCore
import KithTestSupport
import Testing

@Suite(.timeLimit(.minutes(2)))
struct DiscoveryTests {
  @Test func nodesOfOneHostFindEachOtherWithoutAnyAddress() async throws {
    let nodes = try await Nodes()
    let joined = try await running(nodes.first) {
      [try await nodes.join("second", by: nodes.first)]
    }
    for node in joined + [nodes.first] { try node.close() }
    let first = try await Nodes.open(nodes.directory.child("0"), discoversPeers: true)
    let second = try await Nodes.open(nodes.directory.child("second"), discoversPeers: true)
    let stores = (try first.store("com.example.App"), try second.store("com.example.App"))
    try await running(first, second) {
      try stores.0.set("dark", forKey: "theme")
      try await eventually { stores.1.value(forKey: "theme") == "dark" }
      try stores.1.set(12, forKey: "size")
      try await eventually { stores.0.value(forKey: "size") == 12 }
      try await eventually {
        first.status.discovery?.neighbours.map(\.device) == [second.device]
          || second.status.discovery?.neighbours.map(\.device) == [first.device]
      }
      // Nodes that listen on loopback alone are heard there alone.
      for node in [first, second] {
        let links = try #require(node.status.discovery?.links)
        #expect(links == [.init(interface: "lo", isLoopback: true, family: "IPv4")])
      }
    }
    #expect(first.status.discovery == nil)
    try first.close()
    try second.close()
  }

  @Test func aNodeThatMayNotDiscoverIsSilent() async throws {
    let nodes = try await Nodes()
    let store = try nodes.first.store("com.example.App")
    try await running(nodes.first) {
      try store.set(1, forKey: "key")
      #expect(nodes.first.status.discovery == nil)
    }
    try nodes.first.close()
  }
}
