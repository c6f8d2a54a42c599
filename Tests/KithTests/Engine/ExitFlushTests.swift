import Foundation
import KithTestSupport
import Testing

@testable import Kith

@Suite(.timeLimit(.minutes(5)))
struct ExitFlushTests {
  @Test func itFlushesWhatIsStillThereAndOnlyOnce() throws {
    let exit = ExitFlush()
    let fixture = try EngineFixture()
    exit.register(fixture.engine)
    // A service that is gone causes no error.
    exit.register(try EngineFixture().engine)
    #expect(fixture.engine.beginRunning(transport: NoTransport()))
    try fixture.store.set(1, forKey: "a")
    exit.run(within: .seconds(60))
    let commits = fixture.storage.commits
    #expect(try fixture.storage.load().stores.values.contains { $0.drafts.count == 1 })
    try fixture.store.set(2, forKey: "a")
    exit.run(within: .seconds(60))
    #expect(fixture.storage.commits == commits)
    fixture.engine.stopWriter()
    try fixture.engine.close()
  }

  @Test func aStuckDiskOrALockHoldsItUpNoLongerThanTheLimit() async throws {
    let (stuck, locked, sound) = (
      try EngineFixture(), try EngineFixture(), try EngineFixture()
    )
    let exit = ExitFlush()
    for fixture in [stuck, locked, sound] {
      exit.register(fixture.engine)
      #expect(fixture.engine.beginRunning(transport: NoTransport()))
      try fixture.store.set(1, forKey: "a")
    }
    stuck.storage.hold()
    let (begun, begins) = AsyncStream<Void>.makeStream()
    let release = DispatchSemaphore(value: 0)
    async let holding: Void = onThread {
      locked.engine.state.withLock { _ in
        begins.yield()
        release.wait()
      }
    }
    for await _ in begun { break }
    try await onThread { exit.run(within: .milliseconds(200)) }
    try await eventually {
      try sound.storage.load().stores.values.contains { $0.drafts.count == 1 }
    }
    #expect(try stuck.storage.load().stores.values.allSatisfy { $0.drafts.isEmpty })
    stuck.storage.release()
    release.signal()
    try await holding
  }

  /// Directories of the processes that the tests start, made by the parent.
  private static func makeDirectory() throws -> String {
    let path = FileManager.default.temporaryDirectory.appending(path: "kith-\(UUID().uuidString)")
      .path(percentEncoded: false)
    _ = try Node.createAccount(directory: path, name: "test")
    return path
  }

  private static func values(_ directory: String) async throws -> [KeyValueStore.Key:
    PropertyListValue]
  {
    let node = try await Node.open(.init(directory: directory))
    defer { try? node.close() }
    return try node.store("com.example.test").dictionary
  }

  @Test func whatAProcessWroteBeforeItExitsIsThere() async throws {
    for round in 1...10 {
      let directory = try Self.makeDirectory()
      defer { try? FileManager.default.removeItem(atPath: directory) }
      await #expect(processExitsWith: .success) { [directory = directory as String] in
        var configuration = Node.Configuration(directory: directory)
        configuration.hosts = ["127.0.0.1"]
        configuration.port = 0
        configuration.discoversPeers = false
        let node = try await Node.open(configuration)
        let running = Task { try await node.run() }
        try await eventually("the node to listen") { !node.listeningAddresses.isEmpty }
        let store = try node.store("com.example.test")
        for number in 0..<50 { try store.set(.integer(Int64(number)), forKey: "k\(number)") }
        withExtendedLifetime(running) { exit(0) }
      }
      #expect(try await Self.values(directory).count == 50, "round \(round)")
    }
  }
}
