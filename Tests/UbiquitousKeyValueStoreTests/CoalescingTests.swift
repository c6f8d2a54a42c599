import Foundation
import KithTesting
import KithTestSupport
import Synchronization
import Testing

@testable import Kith
@testable import UbiquitousKeyValueStore

/// Changes that come within a moment are told as one.
@Suite(.timeLimit(.minutes(2))) struct CoalescingTests {
  /// The moment in which changes are gathered: it ends when a test says so.
  private final class Moment: Sendable {
    private let (begun, begins) = AsyncStream<Void>.makeStream()
    private let (ended, ends) = AsyncStream<Void>.makeStream()

    /// The wait of the store.
    @Sendable func pass() async {
      begins.yield()
      for await _ in ended { return }
    }

    /// Returns once the first change has come.
    func begin() async {
      for await _ in begun { return }
    }

    func end() { ends.yield() }
  }

  private static func change(
    _ reason: KeyValueStore.ChangeReason, _ keys: String..., superseded: [String] = []
  ) -> KeyValueStore.Change {
    KeyValueStore.Change(
      reason: reason, items: keys.map { .init(key: .init($0), old: nil, new: 1) },
      superseded: superseded.map { .init($0) })
  }

  @Test func `changes of one reason are told together, in the order of the reasons`() async throws {
    let (backend, moment) = (FakeBackend(), Moment())
    let store = NSUbiquitousKeyValueStore(shared: .on(backend, coalescing: moment.pass))
    #expect(store.synchronize())
    let heard = Heard(store)
    backend.tell(Self.change(.externalChange, "b", "c"))
    await moment.begin()
    backend.tell(Self.change(.quotaViolationChange, "q", superseded: ["r"]))
    backend.tell(Self.change(.externalChange, "a", "b"))
    #expect(heard.all.isEmpty)
    moment.end()
    try await eventually { heard.all.count == 2 }
    #expect(heard.reasons == [0, 2])
    #expect(heard.keys == [["a", "b", "c"], ["q", "r"]])
    backend.tell(Self.change(.externalChange, "d"))
    await moment.begin()
    moment.end()
    try await eventually { heard.all.count == 3 }
    #expect(heard.keys.last == ["d"])
  }

  @Test func `a stream that never ends is told moment by moment`() async throws {
    let (backend, moment) = (FakeBackend(), Moment())
    let store = NSUbiquitousKeyValueStore(shared: .on(backend, coalescing: moment.pass))
    #expect(store.synchronize())
    let heard = Heard(store)
    for round in 0..<5 {
      backend.tell(Self.change(.externalChange, "\(round) first"))
      await moment.begin()
      // More than wait one by one.
      for number in 100..<300 { backend.tell(Self.change(.externalChange, "\(round) \(number)")) }
      moment.end()
      try await eventually { heard.all.count == round + 1 }
      #expect(heard.keys.last?.count == 201)
    }
  }

  /// The pattern of a library that copies between its defaults and the store: beside the values
  /// there is the date of the last copy, and a notification older than that is ignored.
  private final class Copier: Sendable {
    private static let dateKey = "date of the last copy"
    private let defaults = Mutex<[String: any Sendable]>([dateKey: Date.distantPast])
    private let store: NSUbiquitousKeyValueStore
    private let keys: [String]
    // Set once, before anybody else has the object.
    nonisolated(unsafe) private var token: (any NSObjectProtocol)?

    init(_ store: NSUbiquitousKeyValueStore, keys: [String]) {
      self.store = store
      self.keys = keys
      token = NotificationCenter.default.addObserver(
        forName: NSUbiquitousKeyValueStore.didChangeExternallyNotification, object: store,
        queue: nil
      ) { [weak self] in self?.keysDidChangeElsewhere($0) }
    }

    deinit {
      if let token { NotificationCenter.default.removeObserver(token) }
    }

    func set(_ value: String, forKey key: String) {
      defaults.withLock { defaults in
        defaults[key] = value
        defaults[Self.dateKey] = Date()
      }
      store.set(Date(), forKey: Self.dateKey)
      store.set(value, forKey: key)
      store.synchronize()
    }

    func string(forKey key: String) -> String? { defaults.withLock { $0[key] as? String } }

    private func keysDidChangeElsewhere(_ notification: Notification) {
      guard
        let changed = notification.userInfo?[NSUbiquitousKeyValueStoreChangedKeysKey] as? [String],
        let theirs = store.dictionaryRepresentation[Self.dateKey] as? Date,
        let ours = defaults.withLock({ $0[Self.dateKey] as? Date }), theirs > ours
      else { return }
      for key in keys where changed.contains(key) {
        let value = store.string(forKey: key)
        defaults.withLock { defaults in
          defaults[key] = value
          defaults[Self.dateKey] = Date()
        }
      }
    }
  }

  @Test func `two keys set one after the other are both copied by a library that compares dates`()
    async throws
  {
    let account = try TestAccount()
    let moment = Moment()
    let here = try NSUbiquitousKeyValueStore.on(
      KithBackend(store: account[0].store("com.example.Editor")))
    let there = try NSUbiquitousKeyValueStore(
      shared: .on(
        KithBackend(store: account[1].store("com.example.Editor")), coalescing: moment.pass))
    #expect(there.synchronize())
    let (writer, reader) = (Copier(here, keys: ["a", "b"]), Copier(there, keys: ["a", "b"]))
    let heard = Heard(there)
    for round in 1...20 {
      writer.set("\(round)", forKey: "a")
      await moment.begin()
      writer.set("\(round)", forKey: "b")
      moment.end()
      try await eventually { heard.all.count == round }
      // Once the observer after this one has been called, this one was.
      try await eventually { reader.string(forKey: "a") == "\(round)" }
      #expect(reader.string(forKey: "b") == "\(round)")
    }
  }
}
