import Foundation
import KithTesting
import KithTestSupport
import Synchronization
import Testing

@testable import Kith
@testable import UbiquitousKeyValueStore

/// Values that have no room, and values that the disk refuses.
@Suite struct RefusalTests {
  private static let name = "com.example.Editor"
  private static let small = KeyValueStore.Policy(totalBytes: 100, keys: 4, valueBytes: 80)

  @Test func `over quota nothing is added, and the refused key is told`() async throws {
    let account = try TestAccount(devices: 1)
    let store = try UbiquityBootstrap.makeStore(
      on: account[0].store(Self.name, policy: Self.small))
    let heard = Heard(store)
    store.set(String(repeating: "a", count: 60), forKey: "a")
    store.set(String(repeating: "b", count: 60), forKey: "b")
    #expect(store.synchronize())
    try await eventually { !heard.all.isEmpty }
    #expect(
      heard.all == [.init(object: ObjectIdentifier(store), reason: 2, keys: ["b"])])
    #expect(store.object(forKey: "b") == nil)
    #expect(store.string(forKey: "a")?.count == 60)
  }

  @Test func `a value or key over its limit is refused and told, an old value stays`()
    async throws
  {
    let account = try TestAccount(devices: 1)
    let store = try UbiquityBootstrap.makeStore(
      on: account[0].store(Self.name, policy: Self.small))
    let heard = Heard(store)
    let long = String(repeating: "k", count: 65)
    store.set("old", forKey: "k")
    store.set(String(repeating: "v", count: 90), forKey: "k")
    try await eventually { heard.keys.joined().contains("k") }
    store.set(Int64(1), forKey: long)
    try await eventually { heard.keys.joined().contains(long) }
    store.set(Int64(1), forKey: "")
    try await eventually { heard.keys.joined().contains("") }
    #expect(Set(heard.reasons) == [2])
    #expect(store.dictionaryRepresentation as? [String: String] == ["k": "old"])
  }

  @Test func `removing what cannot be there is nothing`() async throws {
    let account = try TestAccount(devices: 1)
    let store = try UbiquityBootstrap.makeStore(on: account[0].store(Self.name))
    let heard = Heard(store)
    store.removeObject(forKey: "missing")
    store.removeObject(forKey: "")
    store.removeObject(forKey: String(repeating: "k", count: 65))
    store.set(Int64(1), forKey: "")
    try await eventually { !heard.all.isEmpty }
    #expect(heard.keys == [[""]])
  }

  @Test func `a key at its limit is taken`() throws {
    let account = try TestAccount(devices: 1)
    let store = try UbiquityBootstrap.makeStore(on: account[0].store(Self.name))
    let key = String(repeating: "é", count: 32)
    store.set(Int64(1), forKey: key)
    #expect(store.longLong(forKey: key) == 1)
  }

  @Test func `a key beyond its limit ends a program that asked for it`() async {
    await #expect(processExitsWith: .failure) {
      let shared = SharedStore {
        .init(
          backend: MemoryBackend(because: KithError(.missing, "none")), trapsOnInvalidKeys: true,
          logger: .init(label: "test"))
      }
      NSUbiquitousKeyValueStore(shared: shared).set(
        Int64(1), forKey: String(repeating: "k", count: 65))
    }
  }

  /// Another program's node may take seconds to answer, and Swift's threads are few.
  @Test func `refusals are asked for on no thread of Swift's`() async throws {
    let backend = FakeBackend()
    let isOfTask = Mutex<[Bool]>([])
    backend.state.withLock {
      $0.onQuestion = { isOfTask.withLock { $0.append(withUnsafeCurrentTask { $0 != nil }) } }
    }
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let heard = Heard(store)
    try await eventually { isOfTask.withLock(\.count) == 1 }
    backend.tell(
      .init(reason: .quotaViolationChange, items: [.init(key: "k", old: 1, new: nil)]))
    try await eventually { isOfTask.withLock(\.count) == 2 }
    #expect(isOfTask.withLock(\.self) == [false, false])
    #expect(heard.keys == [["k"]])
  }

  @Test func `refused keys that wait are told together, and are bounded`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    let gate = DispatchSemaphore(value: 0)
    let heard = Heard(store) { gate.wait() }
    backend.state.withLock { $0.problem = KithError(.quotaExceeded, "full") }
    store.set(Int64(1), forKey: "first")
    try await eventually { !heard.all.isEmpty }
    for number in 0..<2_000 { store.set(number, forKey: "key\(number)") }
    for _ in 0..<10 { gate.signal() }
    try await eventually { heard.all.count == 2 }
    #expect(heard.keys[0] == ["first"])
    #expect(heard.keys[1].count == NotificationPoster.refusedKeysLimit)
  }

  @Test func `two that overfill the store apart: the loser is told, and its refusals are taken`()
    async throws
  {
    let account = try TestAccount()
    let stores = try (0...1).map { try account[$0].store(Self.name, policy: Self.small) }
    let faces = stores.map { UbiquityBootstrap.makeStore(on: $0) }
    for face in faces { #expect(face.synchronize()) }
    let heard = faces.map { Heard($0) }
    account.cut(0, 1)
    faces[0].set(String(repeating: "l", count: 60), forKey: "laptop")
    account.advance(by: .seconds(1))
    faces[1].set(String(repeating: "d", count: 60), forKey: "desktop")
    account.mend(0, 1)
    let shown = try #require(stores[0].keys.first).text
    let loser = shown == "laptop" ? 1 : 0
    let lost = shown == "laptop" ? "desktop" : "laptop"
    try await eventually { heard[loser].all.contains { $0.reason == 2 && $0.keys == [lost] } }
    try await eventually { try stores[loser].refusals.isEmpty }
    #expect(faces[loser].object(forKey: lost) == nil)
    #expect(faces[0].dictionaryRepresentation.count == 1)
  }

  @Test func `a refusal from before the program began is told once it uses the store`()
    async throws
  {
    let backend = FakeBackend()
    backend.state.withLock {
      $0.refusals = [
        .test(1, .quota, ["b", "a"]), .test(2, .initialSync, ["c"]), .test(3, .quota, ["a"]),
      ]
    }
    let store = NSUbiquitousKeyValueStore.on(backend)
    let heard = Heard(store)
    #expect(store.synchronize())
    try await eventually { backend.refusals.isEmpty }
    #expect(heard.reasons == [1, 2])
    #expect(heard.keys == [["c"], ["a", "b"]])
  }

  /// A store whose observer was told of a first change.
  private final class Observed {
    let backend = FakeBackend()
    let store: NSUbiquitousKeyValueStore
    let heard: Heard

    init() async throws {
      store = NSUbiquitousKeyValueStore.on(backend)
      let heard = Heard(store)
      self.heard = heard
      #expect(store.synchronize())
      backend.tell(KeyValueStore.Change(reason: .externalChange, items: []))
      try await eventually { heard.all.count == 1 }
    }
  }

  @Test func `a refusal that was not told yet is not forgotten`() async throws {
    let observed = try await Observed()
    let backend = observed.backend
    backend.state.withLock { $0.refusals = [.test(1, .quota, ["a"]), .test(2, .quota, ["b"])] }
    backend.tell(KeyValueStore.Change(reason: .quotaViolationChange, items: [], superseded: ["a"]))
    try await eventually { backend.refusals.count == 1 }
    #expect(backend.refusals.map(\.number) == [2])
    backend.tell(KeyValueStore.Change(reason: .quotaViolationChange, items: [], superseded: ["b"]))
    try await eventually { backend.refusals.isEmpty }
  }

  @Test func `a refusal of a first sync stays until the program starts again`() async throws {
    let observed = try await Observed()
    let (backend, heard) = (observed.backend, observed.heard)
    backend.state.withLock { $0.refusals = [.test(1, .initialSync, ["a"])] }
    for reason in [KeyValueStore.ChangeReason.initialSyncChange, .accountChange] {
      backend.tell(KeyValueStore.Change(reason: reason, items: [], superseded: ["a"]))
    }
    backend.tell(KeyValueStore.Change(reason: .externalChange, items: [], superseded: ["b"]))
    try await eventually { heard.keys.last == ["b"] }
    #expect(backend.refusals.map(\.number) == [1])
    let next = NSUbiquitousKeyValueStore.on(backend)
    #expect(next.synchronize())
    try await eventually { backend.refusals.isEmpty }
  }

  /// A device removes its refusals from the oldest on.
  @Test func `a refusal of a first sync stays until a later one was told`() async throws {
    let observed = try await Observed()
    let (backend, heard) = (observed.backend, observed.heard)
    // The second found no room at the first sync, either.
    backend.state.withLock {
      $0.refusals = [.test(1, .initialSync, ["a"]), .test(2, .quota, ["b"])]
    }
    backend.tell(
      KeyValueStore.Change(reason: .initialSyncChange, items: [], superseded: ["a", "b"]))
    try await eventually { heard.keys.last == ["a", "b"] }
    backend.tell(KeyValueStore.Change(reason: .externalChange, items: [], superseded: ["c"]))
    try await eventually { heard.keys.last == ["c"] }
    #expect(backend.refusals.map(\.number) == [1, 2])
    backend.state.withLock {
      $0.refusals += [
        .test(3, .quota, ["d"]), .test(4, .initialSync, ["e"]), .test(5, .quota, ["d"]),
      ]
    }
    backend.tell(KeyValueStore.Change(reason: .quotaViolationChange, items: [], superseded: ["d"]))
    // Nobody has heard of the fourth, nor so of the fifth.
    try await eventually { backend.refusals.map(\.number) == [4, 5] }
    for reason in [KeyValueStore.ChangeReason.externalChange, .quotaViolationChange] {
      let lost: KeyValueStore.Key = reason == .externalChange ? "e" : "d"
      backend.tell(KeyValueStore.Change(reason: reason, items: [], superseded: [lost]))
    }
    try await eventually { backend.refusals.isEmpty }
  }

  @Test func `a refusal of two keys is kept until both were told`() async throws {
    let observed = try await Observed()
    let (backend, heard) = (observed.backend, observed.heard)
    backend.state.withLock { $0.refusals = [.test(1, .quota, ["a", "b"])] }
    // Each is told once what came before has been dealt with.
    for keys: [KeyValueStore.Key] in [["a"], ["other"], ["another"]] {
      backend.tell(KeyValueStore.Change(reason: .quotaViolationChange, items: [], superseded: keys))
      try await eventually { heard.keys.last == keys.map(\.text) }
    }
    #expect(backend.refusals.map(\.number) == [1], "nobody has heard of b")
    backend.tell(
      KeyValueStore.Change(reason: .quotaViolationChange, items: [], superseded: ["a", "b"]))
    try await eventually { backend.refusals.isEmpty }
  }

  @Test
  func `synchronizing is true offline, and false where the disk fails or nothing is configured`()
    throws
  {
    let account = try TestAccount()
    let store = try UbiquityBootstrap.makeStore(on: account[0].store(Self.name))
    #expect(store.synchronize())
    account.isolate(0)
    store.set(Int64(1), forKey: "n")
    #expect(store.synchronize())

    let backend = FakeBackend()
    let failing = NSUbiquitousKeyValueStore.on(backend)
    #expect(failing.synchronize())
    backend.state.withLock { $0.problem = KithError(.diskFull, "full") }
    failing.set(Int64(1), forKey: "n")
    #expect(!failing.synchronize())
    backend.state.withLock { $0.problem = nil }
    #expect(failing.synchronize())
    #expect(backend.state.withLock { $0.flushes } == 3)

    let local = NSUbiquitousKeyValueStore.on(FakeBackend(), isConfigured: false)
    local.set(Int64(1), forKey: "n")
    #expect(!local.synchronize())
    #expect(local.longLong(forKey: "n") == 1)
  }

  @Test func `without a usable directory the program goes on in memory`() async throws {
    let store = NSUbiquitousKeyValueStore.on(
      MemoryBackend(because: KithError(.readOnly, "no"), policy: Self.small))
    let heard = Heard(store)
    store.set("a", forKey: "k")
    #expect(store.string(forKey: "k") == "a")
    #expect(store.dictionaryRepresentation as? [String: String] == ["k": "a"])
    #expect(!store.synchronize())
    store.removeObject(forKey: "k")
    #expect(store.object(forKey: "k") == nil)
    for number in 0..<5 { store.set(number, forKey: "key\(number)") }
    store.set(Int64(1), forKey: "")
    try await eventually { Set(heard.keys.joined()) == ["", "key4"] }
    #expect(store.dictionaryRepresentation.count == 4)
  }
}
