import Foundation
import KithCore
import KithUserDefaults
import Testing

@testable import Kith

/// A store that takes writes, and whose disk takes none.
private final class UnflushedService: StoreService {
  let view: StoreView
  let progress = Signal()

  init(_ view: StoreView) { self.view = view }

  private static let full = KithError(.diskFull, "No room.")

  func write(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) throws(KithError) {
    let change = ViewChange(
      store: store, reason: nil, changes: operations.map { (KeyValueStore.Key($0.key), $0.value) })
    for run in view.apply([change]) { run() }
  }
  func write(
    _ store: StoreIdentifier, each transactions: ArraySlice<[KithCore.Operation]>
  ) throws(KithError) -> [KithError?] {
    try transactions.map { operations throws(KithError) in
      try write(store, operations, expecting: .none)
      return nil
    }
  }
  func writeDurably(
    _ store: StoreIdentifier, _ operations: [KithCore.Operation], expecting: ExpectedValues
  ) async throws(KithError) { throw Self.full }
  func flush() throws(KithError) { throw Self.full }
  var loss: WriteLoss? { nil }
  func open(_ store: StoreIdentifier, policy: Policy) throws(KithError) -> StoreView { view }
  func open(
    _ view: StoreView, policy: Policy, reason: ChangeReason, superseded: Set<KeyValueStore.Key>
  ) throws(KithError) {}
  func release(_ view: StoreView) {}
  func adopt(
    _ store: StoreIdentifier, _ policy: Policy, _ writes: [LocalWrite]
  ) throws(KithError) -> Set<KeyValueStore.Key> { throw Self.full }
  func usage(of store: StoreIdentifier) -> Usage { Usage(bytes: 0, keys: 0, policy: .standard) }
  func hiddenEntries(of store: StoreIdentifier) -> [HiddenEntry] { [] }
  func refusals(
    of store: StoreIdentifier, takingThrough number: UInt64?
  ) throws(KithError) -> [Refusal] { [] }
  func history(of store: StoreIdentifier, key: String?, limit: Int) -> [PastValue] { [] }
  func undo(_ undo: Undo, in store: StoreIdentifier) async throws(KithError) -> [PastValue] {
    throw Self.full
  }
  func syncReport(of store: StoreIdentifier, within _: Duration) -> SyncReport {
    SyncReport(complete: [], incomplete: [], hasUnpublishedWrites: true)
  }
  func waitUntilComplete(_ store: StoreIdentifier, devices: Int?, timeout: Duration) async {}
}

struct MirrorDurabilityTests {
  /// A baseline that is saved before the store is durable says after a crash that the store has
  /// changed, and the store's old value replaces the program's new one.
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
        identifier: .test, device: .test, values: ["theme": theme])
      return KeyValueStore(service: UnflushedService(view), view: view)
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
