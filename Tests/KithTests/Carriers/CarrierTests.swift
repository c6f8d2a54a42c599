import Foundation
import KithCore
import KithCrypto
import KithStorage
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// Nodes that exchange through storage, and never by TCP.
@Suite(.timeLimit(.minutes(5)))
struct CarrierTests {
  private static let store = "com.example.test"

  /// Two devices of an account that know no address of each other, with a carrier each.
  private final class Pair: Sendable {
    let nodes: Nodes
    let storage = SharedStorage()

    init() async throws {
      let nodes = try await Nodes()
      self.nodes = nodes
      let first = nodes.first
      let second = try await running(first) { try await nodes.join("second", by: first) }
      for node in [first, second] {
        try await node.keepCarrier(SharedStorage.settings)
        try node.close()
      }
    }

    /// Opens a device that neither listens nor dials.
    func open(_ name: String, carriers: Bool = true) async throws -> Node {
      var configuration = Node.Configuration(directory: nodes.directory.child(name))
      configuration.hosts = []
      configuration.discoversPeers = false
      configuration.servesControlSocket = false
      if carriers { configuration.carriers = storage.opener }
      return try await Node.open(configuration)
    }

    /// Runs a device while the body does its work.
    func on<Result: Sendable>(
      _ name: String, _ body: @escaping @Sendable (Node, KeyValueStore) async throws -> Result
    ) async throws -> Result {
      let node = try await open(name)
      let result = try await withThrowingTaskGroup(of: Result?.self) { group in
        group.addTask {
          try await node.run()
          return nil
        }
        group.addTask {
          try await eventually("the carriers") {
            node.status.carriers.first?.listedMilliseconds != nil
          }
          return try await body(node, node.store(CarrierTests.store))
        }
        defer { group.cancelAll() }
        while let result = try await group.next() {
          if let result { return result }
        }
        throw TimedOut()
      }
      try node.close()
      return result
    }
  }

  @Test func `devices that are never on together exchange through a carrier`() async throws {
    let pair = try await Pair()
    try await pair.on("0") { _, store in
      try await store.commit {
        $0.set("dark", forKey: "theme")
        $0.set(1, forKey: "mine")
      }
      let report = try await store.waitUntilSynced(timeout: .seconds(30))
      #expect(report.carriers.map(\.location) == ["/shared"])
      #expect(!report.isComplete, "the other device has not said that it has it")
    }
    try await pair.on("second") { _, store in
      try await eventually("the other's write") { store.value(forKey: "theme") == "dark" }
      try await store.commit { $0.removeValue(forKey: "theme") }
      let report = try await store.waitUntilSynced(timeout: .seconds(30))
      #expect(report.carriers.count == 1)
    }
    try await pair.on("0") { _, store in
      try await eventually("the removal") { store.value(forKey: "theme") == nil }
      #expect(store.value(forKey: "mine") == 1)
      // The other device said on the carrier what it has.
      let report = try await store.waitUntilSynced(timeout: .seconds(30))
      #expect(report.isComplete)
    }
  }

  /// A folder on a stick that is pulled out, for one.
  @Test func `a place that went away is watched again after a listing`() async throws {
    let pair = try await Pair()
    let storage = pair.storage
    @Sendable func listings() -> Int {
      storage.state.withLock { $0.operations.count { $0 == "list" } }
    }
    try await pair.on("0") { _, _ in
      try await eventually("the first watch") { storage.state.withLock { !$0.changes.isEmpty } }
      storage.state.withLock { $0.changes[0] }.finish()
      try await eventually("the second watch") { storage.state.withLock { $0.changes.count } == 2 }
      let before = listings()
      storage.state.withLock { $0.changes[1] }.yield()
      try await eventually("a turn because of the change") { listings() > before }
    }
  }

  @Test func `a carrier's objects show nothing of the account`() async throws {
    let pair = try await Pair()
    try await pair.on("0") { _, store in
      try await store.commit { $0.set("plaintext value", forKey: "plaintext key") }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
    }
    let objects = pair.storage.objects
    #expect(!objects.isEmpty)
    for (name, bytes) in objects {
      #expect(name.count == 32)
      #expect(bytes.count == 4_096)
      for text in ["plaintext", "first", "second", "com.example"] {
        #expect(Data(bytes).range(of: Data(text.utf8)) == nil)
      }
    }
    // Under one key, with random nonces.
    let windows = objects.values.flatMap { bytes in
      stride(from: 0, to: bytes.count - 15, by: 1).map { Array(bytes[$0..<$0 + 16]) }
    }
    #expect(Set(windows).count == windows.count, "two places hold the same 16 bytes")
  }

  @Test func `a carrier that cannot be used is a problem that says what to do`() async throws {
    let pair = try await Pair()
    try await pair.on("0") { node, store in
      pair.storage.fail(CarrierFailure(.notThere, "The folder is not there. Plug the stick in."))
      try await store.commit { $0.set("kept", forKey: "key") }
      let report = try await store.waitUntilSynced(timeout: .milliseconds(200))
      #expect(report.carriers.isEmpty)
      try await eventually("the problem") {
        node.status.carriers.first?.problem == "The folder is not there. Plug the stick in."
      }
      #expect(store.value(forKey: "key") == "kept")
      pair.storage.fail(nil)
      try await eventually("the carrier to hold it") {
        _ = try await store.waitUntilSynced(timeout: .seconds(1))
        return try !store.syncReport.carriers.isEmpty
      }
      #expect(node.status.carriers.first?.problem == nil)
    }
  }

  @Test func `a node that stops puts what it has published`() async throws {
    let pair = try await Pair()
    try await pair.on("0") { _, store in
      try await store.commit { $0.set("last", forKey: "key") }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
    }
    // The second reads, and says so only with its last turn, as it ends.
    try await pair.on("second") { _, store in
      try await eventually("the write") { store.value(forKey: "key") == "last" }
    }
    try await pair.on("0") { _, store in
      try await eventually("the other's word") { try store.syncReport.isComplete }
    }
  }

  /// Its core takes no turn, so none can be waited for.
  @Test func `a revoked device stops without a last turn`() async throws {
    let pair = try await Pair()
    let path = pair.nodes.directory.path
    let first = try await Nodes.open(path + "/0")
    try await running(first) {
      let second = try await Nodes.open(path + "/second", peers: first.listeningAddresses)
      try await running(second) {
        try await second.meetsPeer()
        try await first.revoke(second.device, keeping: [])
        try await eventually("the revocation") { second.status.isRevoked }
      }
      try second.close()
    }
    try first.close()

    let revoked = try await pair.open("second")
    let task = Task { try await revoked.run() }
    try await eventually("its carrier") { pair.storage.state.withLock { !$0.opened.isEmpty } }
    let began = ContinuousClock.now
    task.cancel()
    try await task.value
    #expect(ContinuousClock.now - began < .seconds(3))
    try revoked.close()
  }

  /// Any member may change a shared carrier at any time.
  @Test func `new settings of one carrier disturb no turn on another`() async throws {
    let pair = try await Pair()
    let own = pair.storage
    try await pair.on("0") { node, store in
      own.state.withLock { state in
        state.others["https://example.com/kith"] = SharedStorage()
        state.holdsPuts = true
      }
      try await store.commit { $0.set("dark", forKey: "theme") }
      node.engine.lookAtCarriers()
      try await eventually("a put") { own.state.withLock { $0.heldPuts == 1 } }
      for password in ["old", "new"] {
        let shared = CarrierSettings(
          kind: "webdav", location: "https://example.com/kith", credentials: "me\n\(password)",
          isShared: true)
        try await node.keepCarrier(shared)
        try await eventually("the \(password) password's turn") {
          own.state.withLock { $0.opened.contains(shared) }
            && node.status.carriers.count { $0.listedMilliseconds != nil } == 2
        }
      }
      own.state.withLock { state in
        #expect(state.heldPuts == 1 && state.cancelledPuts == 0)
        #expect(state.opened.count { !$0.isShared } == 1)
        state.holdsPuts = false
      }
      // The settings are drafts too, and wait for a certain time unless somebody asks.
      node.engine.lookAtCarriers()
      try await eventually("the carrier to hold it") {
        node.status.carriers.first?.heldSinceMilliseconds != nil
      }
    }
  }

  @Test func `the problem of a carrier that is used no more is forgotten`() async throws {
    let pair = try await Pair()
    let shared = CarrierSettings(kind: "s3", location: "nowhere", isShared: true)
    pair.storage.state.withLock { $0.closed = [shared.location] }
    try await pair.on("0") { node, _ in
      let dispatcher = node.engine.state.withLock { $0.carriers }
      try await node.keepCarrier(shared)
      try await eventually("the problem") { dispatcher.problem(of: shared.id) != nil }
      try await node.removeCarrier(shared)
      try await eventually("no problem") { dispatcher.problem(of: shared.id) == nil }
    }
  }

  @Test func `the account's carriers are used by devices that hear of them`() async throws {
    let pair = try await Pair()
    let shared = CarrierSettings(
      kind: "webdav", location: "https://example.com/kith", credentials: "user\npassword",
      isShared: true)
    try await pair.on("0") { node, _ in
      let access: any NodeAccess = node
      try await access.keepCarrier(shared)
      try await eventually("both carriers") { node.status.carriers.count == 2 }
      try await node.lookAtCarriers()
      try await eventually("the deposit", seconds: 10) {
        node.status.carriers.allSatisfy { $0.heldSinceMilliseconds != nil }
      }
      // The account's own store shows nowhere.
      #expect(!node.status.stores.contains { $0.identifier.rawValue == CarrierSettings.store })
    }
    try await pair.on("second") { node, _ in
      try await eventually("the account's carrier") { node.status.carriers.count == 2 }
      let shared = node.status.carriers.first { $0.isShared }
      let carrier = try #require(shared)
      #expect(carrier.kind == "webdav" && carrier.location == "https://example.com/kith")
    }
  }

  @Test func `a removed carrier's objects are forgotten, with and without a running node`()
    async throws
  {
    let pair = try await Pair()
    let settings = SharedStorage.settings
    try await pair.on("0") { node, store in
      try await store.commit { $0.set("dark", forKey: "theme") }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
      #expect(node.status.carriers.first?.objects ?? 0 > 0)
    }
    var node = try await pair.open("0")
    #expect(node.status.carriers.first?.objects ?? 0 > 0)
    try await node.removeCarrier(settings)
    try await node.keepCarrier(settings)
    #expect(node.status.carriers.first?.objects == 0)
    try node.close()
    node = try await pair.open("0")
    #expect(node.status.carriers.first?.objects == 0)
    try node.close()

    try await pair.on("0") { node, store in
      try await eventually("the objects") { node.status.carriers.first?.objects ?? 0 > 0 }
      try await node.removeCarrier(settings)
      try await node.keepCarrier(settings)
      // The carrier is used on, whether or not its runner saw that it was gone.
      try await store.commit { $0.set("light", forKey: "theme") }
      try await eventually("the carrier to hold it") {
        _ = try await store.waitUntilSynced(timeout: .seconds(1))
        return try !store.syncReport.carriers.isEmpty
      }
    }
    try await pair.on("second") { _, store in
      try await eventually("the write") { store.value(forKey: "theme") == "light" }
    }
  }

  /// Otherwise a turn would get more bytes than it counts.
  @Test func `an object that is larger than it was listed is got once its size is listed`()
    async throws
  {
    let pair = try await Pair()
    try await pair.on("0") { _, store in
      try await store.commit { $0.set("dark", forKey: "theme") }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
    }
    pair.storage.state.withLock { ($0.listedBytes, $0.limits) = (100, []) }
    try await pair.on("second") { _, store in
      try await eventually("a get") { pair.storage.state.withLock { !$0.limits.isEmpty } }
      #expect(pair.storage.state.withLock { $0.limits.allSatisfy { $0 == 100 } })
      #expect(store.value(forKey: "theme") == nil)
      pair.storage.state.withLock { $0.listedBytes = nil }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
      try await eventually("the write") { store.value(forKey: "theme") == "dark" }
    }
  }

  /// A device took nothing sorted after such an object, and put nothing any more.
  @Test(arguments: [CarrierFailure.Code.denied, .unexpected])
  func `objects that cannot be read keep a device from no others`(
    _ code: CarrierFailure.Code
  ) async throws {
    let pair = try await Pair()
    let names: [String] = try await pair.on("0") { node, store in
      try await store.commit { $0.set("dark", forKey: "theme") }
      _ = try await store.waitUntilSynced(timeout: .seconds(30))
      let known = node.engine.read { $0.carrierKeys }
      let keys = try #require(known)
      var random = SystemRandom()
      return (0..<8).map { _ in ObjectName(of: keys, entropy: &random).description }
    }
    pair.storage.state.withLock { state in
      for name in names {
        for place in state.places.keys {
          state.places[place]?[name] = [UInt8](repeating: 0, count: 4_096)
        }
        state.refused[name] = CarrierFailure(code, "Not this one.")
      }
    }
    try await pair.on("second") { node, store in
      try await eventually("the other's write") { store.value(forKey: "theme") == "dark" }
      try await eventually("the problem, with a name") {
        let problem = node.status.carriers.first?.problem
        return names.contains { problem == "The object \($0) was left out. Not this one." }
      }
      // From now on nothing that it gets can be read.
      try await store.commit { $0.set(1, forKey: "mine") }
      try await eventually("the carrier to hold it", every: 50) {
        node.engine.lookAtCarriers()
        return node.status.carriers.first?.heldSinceMilliseconds != nil
      }
      // A wrong password is told as it is.
      let wrong = CarrierFailure(.denied, "The password is wrong.")
      pair.storage.fail(wrong)
      try await eventually("the other problem", every: 50) {
        node.engine.lookAtCarriers()
        return node.status.carriers.first?.problem == wrong.message
      }
      pair.storage.fail(nil)
    }
    try await pair.on("0") { node, store in
      try await eventually("the second's write") { store.value(forKey: "mine") == 1 }
      try await eventually("the problem") { node.status.carriers.first?.problem != nil }
      let report = try await store.waitUntilSynced(timeout: .seconds(30))
      #expect(report.carriers.count == 1)
      pair.storage.state.withLock { $0.refused = [:] }
      try await eventually("no problem", every: 50) {
        node.engine.lookAtCarriers()
        return node.status.carriers.first?.problem == nil
      }
    }
  }
}
