import Foundation
import KithCore
import KithUserDefaults
import Testing

@testable import Kith

/// A store that takes writes, and whose disk takes none.
private final class UnflushedBacking: StoreBacking {
  let view: StoreView

  init(_ view: StoreView) { self.view = view }

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], gathers: Bool
  ) throws(KithError) {
    let change = ViewChange(
      store: store, reason: nil, changes: operations.map { (Kith.Key($0.key), $0.value) })
    for run in view.apply([change]) { run() }
  }
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation]
  ) async throws(KithError) {
    throw KithError(.diskFull, "No room.")
  }
  func flush() throws(KithError) { throw KithError(.diskFull, "No room.") }
  func usage(of store: StoreIdentifier) -> Usage { Usage(bytes: 0, keys: 0, policy: .standard) }
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenValue] { [] }
  func refusals(of store: StoreIdentifier) -> [RefusedTransaction] { [] }
  func takeRefusals(of store: StoreIdentifier, through number: UInt64) -> Bool { true }
  func syncReport(of store: StoreIdentifier) -> SyncReport {
    SyncReport(complete: [], incomplete: [], hasUnpublishedWrites: true)
  }
  func waitUntilComplete(_ store: StoreIdentifier, timeout: Duration) async {}
}

struct MirrorDurabilityTests {
  /// A mark that is kept before the store is durable says after a crash that the store has changed,
  /// and the program's new value gives way to its old one.
  @Test func whatTheStoreLostInACrashIsWrittenAgain() throws {
    let suite = "kith-test-\(UUID().uuidString)"
    let defaults = try #require(UserDefaults(suiteName: suite))
    defer {
      defaults.removePersistentDomain(forName: suite)
      let environment = ProcessInfo.processInfo.environment
      let folder = environment["XDG_CONFIG_HOME"] ?? "\(environment["HOME"] ?? "")/.config"
      try? FileManager.default.removeItem(atPath: "\(folder)/\(suite).plist")
    }
    func store(_ theme: PropertyListValue) throws -> KeyValueStore {
      let view = StoreView(
        identifier: try #require(StoreIdentifier("com.example.test")), values: ["theme": theme])
      return KeyValueStore(backing: UnflushedBacking(view), view: view)
    }
    func mirror(_ store: KeyValueStore) -> UserDefaultsMirror {
      UserDefaultsMirror(store, keys: ["theme"], suite: suite)
    }
    #expect(mirror(try store("old")).sync().taken == ["theme"])
    defaults.set("new", forKey: "theme")
    let failed = mirror(try store("old")).sync()
    #expect(failed.stored.isEmpty)
    #expect(failed.problems["theme"]?.code == .diskFull)
    // The process was killed, and the disk holds what it held.
    let again = try store("old")
    mirror(again).sync()
    #expect(defaults.string(forKey: "theme") == "new")
    #expect(again.value(forKey: "theme") == "new")
  }
}
