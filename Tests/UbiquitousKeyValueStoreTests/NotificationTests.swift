import Foundation
import KithTesting
import KithTestSupport
import Synchronization
import Testing

@testable import Kith
@testable import UbiquitousKeyValueStore

/// The notifications that programs get, when, and how often.
@Suite struct NotificationTests {
  private static let name = "com.example.Editor"

  @Test func `the symbols have the values that programs write as literals`() {
    #expect(
      NSUbiquitousKeyValueStore.didChangeExternallyNotification.rawValue
        == "NSUbiquitousKeyValueStoreDidChangeExternallyNotification")
    #expect(NSUbiquitousKeyValueStoreChangeReasonKey == "NSUbiquitousKeyValueStoreChangeReasonKey")
    #expect(NSUbiquitousKeyValueStoreChangedKeysKey == "NSUbiquitousKeyValueStoreChangedKeysKey")
    #expect(NSUbiquitousKeyValueStoreServerChange == 0)
    #expect(NSUbiquitousKeyValueStoreInitialSyncChange == 1)
    #expect(NSUbiquitousKeyValueStoreQuotaViolationChange == 2)
    #expect(NSUbiquitousKeyValueStoreAccountChange == 3)
    #expect(
      NSNotification.Name.NSUbiquityIdentityDidChange.rawValue
        == "NSUbiquityIdentityDidChangeNotification")
  }

  @Test func `another device's write is told with the store, the reason and the keys`()
    async throws
  {
    let account = try TestAccount()
    let here = try account[0].store(Self.name)
    let store = try UbiquityBootstrap.makeStore(on: account[1].store(Self.name))
    #expect(store.synchronize())
    let heard = Heard(store)
    try await here.commit {
      $0.set("dark", forKey: "theme")
      $0.set(12, forKey: "size")
    }
    try await eventually { !heard.all.isEmpty }
    #expect(
      heard.all == [.init(object: ObjectIdentifier(store), reason: 0, keys: ["size", "theme"])])
    #expect(store.string(forKey: "theme") == "dark")
    try here.removeValue(forKey: "theme")
    try await eventually { heard.all.count == 2 }
    #expect(heard.keys.last == ["theme"])
    #expect(store.object(forKey: "theme") == nil)
  }

  @Test func `an observer of a store that nobody read hears of changes`() async throws {
    let account = try TestAccount()
    let here = try account[0].store(Self.name)
    let store = try UbiquityBootstrap.makeStore(on: account[1].store(Self.name))
    let heard = Heard(store)
    try here.set("dark", forKey: "theme")
    try await eventually { heard.keys == [["theme"]] }
  }

  @Test func `reasons and keys read in every way that programs read them`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let (infos, continuation) = AsyncStream<[Bool]>.makeStream()
    let token = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
    ) { notification in
      let info = notification.userInfo
      let reason = info?["NSUbiquitousKeyValueStoreChangeReasonKey"]
      let keys = info?["NSUbiquitousKeyValueStoreChangedKeysKey"]
      continuation.yield([
        reason as? Int == 1, (reason as? NSNumber)?.intValue == 1, reason as? Int64 == 1,
        keys as? [String] == ["a", "b"], keys as? [NSString] == ["a", "b"],
        (keys as? NSArray)?.count == 2,
      ])
    }
    defer { NotificationCenter.default.removeObserver(token) }
    backend.tell(
      KeyValueStore.Change(
        reason: .initialSyncChange,
        items: [
          .init(key: "a", old: nil, new: 1), .init(key: "b", old: 1, new: nil),
        ]))
    var iterator = infos.makeAsyncIterator()
    #expect(await iterator.next() == [true, true, true, true, true, true])
  }

  @Test func `each reason of a change is the reason of Apple's class`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let heard = Heard(store)
    let reasons: [KeyValueStore.ChangeReason] = [
      .externalChange, .initialSyncChange, .quotaViolationChange, .accountChange,
    ]
    for reason in reasons { backend.tell(KeyValueStore.Change(reason: reason, items: [])) }
    try await eventually { heard.all.count == 4 }
    #expect(heard.reasons == [0, 1, 2, 3])
  }

  /// It unites its words with the account's at the first sync, and reads the store again when the
  /// account changes.
  @Test func `a program that unites at the first sync keeps its own values`() async throws {
    let account = try TestAccount()
    let (there, here) = (try account[0].store(Self.name), try account[1].store(Self.name))
    try there.set(["one", "two"], forKey: "words")
    try account[1].signOut()
    let store = UbiquityBootstrap.makeStore(on: here)
    let memory = Mutex(["three"])
    store.set(["three"], forKey: "words")
    #expect(store.synchronize())
    let token = NotificationCenter.default.addObserver(
      forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store, queue: nil
    ) { [unowned store] notification in
      let reason = notification.userInfo?[NSUbiquitousKeyValueStoreChangeReasonKey] as? Int
      let stored = store.array(forKey: "words") as? [String] ?? []
      memory.withLock { memory in
        if reason == NSUbiquitousKeyValueStoreInitialSyncChange {
          memory = Set(memory).union(stored).sorted()
          store.set(memory, forKey: "words")
        } else if reason == NSUbiquitousKeyValueStoreAccountChange {
          memory = stored
        }
      }
    }
    defer { NotificationCenter.default.removeObserver(token) }
    let heard = Heard(store)
    try account[1].signIn()
    try await eventually { heard.reasons.last == 3 }
    // Twice, if the lost write is found among those that wait before the change comes.
    #expect(heard.reasons.dropLast().allSatisfy { $0 == 1 } && heard.all.count >= 2)
    #expect(heard.keys.allSatisfy { $0 == ["words"] })
    #expect(memory.withLock { $0 } == ["one", "three", "two"])
    try await eventually { there.value(forKey: "words") == ["one", "three", "two"] }
  }

  @Test func `a change of the account that is gathered with a first sync comes after it`()
    async throws
  {
    let notices = Notice.joining([
      .init(reason: .accountChange, items: [.init(key: "a", old: 1, new: nil)]),
      .init(reason: .externalChange, items: [.init(key: "b", old: nil, new: 1)]),
      .init(reason: .initialSyncChange, items: [.init(key: "a", old: nil, new: 2)]),
    ])
    #expect(notices.map(\.reason) == [1, 0, 3])
  }

  @Test func `keys whose writes lost are told too, each once`() async throws {
    let backend = FakeBackend()
    let store = NSUbiquitousKeyValueStore.on(backend)
    #expect(store.synchronize())
    let heard = Heard(store)
    backend.tell(
      KeyValueStore.Change(
        reason: .initialSyncChange, items: [.init(key: "b", old: 1, new: 2)],
        superseded: ["a", "b"]))
    try await eventually { !heard.all.isEmpty }
    #expect(heard.keys == [["a", "b"]])
  }

  @Test func `own writes are not told`() async throws {
    let account = try TestAccount()
    let store = try UbiquityBootstrap.makeStore(on: account[0].store(Self.name))
    let there = try account[1].store(Self.name)
    #expect(store.synchronize())
    let heard = Heard(store)
    store.set("mine", forKey: "mine")
    store.removeObject(forKey: "mine")
    #expect(store.synchronize())
    try there.set("yours", forKey: "yours")
    try await eventually { !heard.all.isEmpty }
    #expect(heard.keys == [["yours"]])
  }

  @Test func `each live object is told once, and none is kept alive`() async throws {
    let backend = FakeBackend()
    let shared = SharedStore.on(backend)
    let first = NSUbiquitousKeyValueStore(shared: shared)
    let second = NSUbiquitousKeyValueStore(shared: shared)
    weak var third: NSUbiquitousKeyValueStore?
    do {
      let passing = NSUbiquitousKeyValueStore(shared: shared)
      third = passing
      #expect(passing.synchronize())
    }
    #expect(third == nil)
    let (one, two) = (Heard(first), Heard(second))
    backend.tell(
      KeyValueStore.Change(reason: .externalChange, items: [.init(key: "a", old: nil, new: 1)]))
    try await eventually { !one.all.isEmpty && !two.all.isEmpty }
    #expect(one.all == [.init(object: ObjectIdentifier(first), reason: 0, keys: ["a"])])
    #expect(two.all == [.init(object: ObjectIdentifier(second), reason: 0, keys: ["a"])])
  }

  @Test func `objects on the same data see each other's writes`() {
    let shared = SharedStore.on(FakeBackend())
    let (one, two) = (
      NSUbiquitousKeyValueStore(shared: shared), NSUbiquitousKeyValueStore(shared: shared)
    )
    one.set("a", forKey: "k")
    #expect(two.string(forKey: "k") == "a")
    #expect(one != two)
  }

  @Test func `with the last object the work for it ends`() async throws {
    let ended = Ended()
    do {
      let store = NSUbiquitousKeyValueStore.on(EndlessBacking(ended: ended))
      #expect(store.synchronize())
      try await eventually { ended.hasBegun }
    }
    try await eventually { ended.hasEnded }
  }

  @Test func `an observer may use the store, and hold up nobody but the next notification`()
    async throws
  {
    let account = try TestAccount()
    let here = try account[0].store(Self.name)
    let store = try UbiquityBootstrap.makeStore(on: account[1].store(Self.name))
    #expect(store.synchronize())
    let gate = DispatchSemaphore(value: 0)
    let heard = Heard(store) { [weak store] in
      store?.set("seen", forKey: "answer")
      _ = store?.synchronize()
      gate.wait()
    }
    try here.set(1, forKey: "n")
    try await eventually { !heard.all.isEmpty }
    // The observer is held up now; nothing else is.
    for number in 0..<200 {
      try here.set(.integer(Int64(number)), forKey: "key\(number)")
      store.set(number, forKey: "mine")
      #expect(store.synchronize())
    }
    #expect(here.value(forKey: "answer") == "seen")
    #expect(here.value(forKey: "mine") == 199)
    #expect(heard.all.count == 1)
    // Changes that could not be told one by one are told together: no key is missing, and the queue
    // is bounded.
    for _ in 0..<500 { gate.signal() }
    try await eventually { Set(heard.keys.joined()).count == 201 }
    #expect(heard.all.count <= 1 + 64 + 2)
  }
}
