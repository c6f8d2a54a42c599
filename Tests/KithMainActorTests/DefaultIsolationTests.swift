import Kith
import KithTesting
import Observation
import Testing

// The module is compiled as Xcode's templates have it, with everything on the main actor unless it
// says otherwise: what does not compile here does not compile in such programs.

enum Theme: String, StoreValue { case system, dark }
struct Window: Equatable, StoreValue { var width = 800 }

nonisolated enum Keys {
  static let theme = StoreKey("theme", default: Theme.system)
  static let window = StoreKey("window", default: Window())
}

nonisolated extension StoreKey where Value == Int {
  static var count: Self { .init("count", default: 0) }
}

final class Model {
  let store: KeyValueStore
  @Stored var theme: Theme
  var titles: [String] = []

  init(_ store: KeyValueStore) {
    self.store = store
    _theme = Stored(Keys.theme, in: store)
  }

  func widen() async throws(KithError) {
    try await store.commit {
      $0[Keys.window].width += 100
      titles.append("\($0[Keys.window].width)")
    }
  }

  func follow(until last: Int) async {
    for await count in store.values(for: .count) {
      titles.append("\(count)")
      if count == last { return }
    }
  }
}

actor Importer {
  let store: KeyValueStore

  init(_ store: KeyValueStore) { self.store = store }

  func run() async throws -> Theme {
    try store.set(.dark, for: Keys.theme)
    try await store.commit { $0[.count] += 1 }
    return store[Keys.theme]
  }
}

@Suite(.timeLimit(.minutes(5)))
struct DefaultIsolationTests {
  private func makeStore() throws -> KeyValueStore {
    try TestAccount(devices: 1)[0].store("com.example.Editor")
  }

  @Test func `the main actor and others use the same keys`() async throws {
    let model = Model(try makeStore())
    #expect(try await Importer(model.store).run() == .dark)
    #expect(model.theme == .dark)
    model.theme = .system
    #expect(model.store[Keys.theme] == .system)
    try await model.widen()
    #expect(model.titles == ["900"])
    #expect(model.store[Keys.window] == Window(width: 900))
  }

  @Test func `sequences are followed on the main actor`() async throws {
    let model = Model(try makeStore())
    async let following: Void = model.follow(until: 2)
    for _ in 0..<2 { _ = try await Importer(model.store).run() }
    await following
    #expect(model.titles.last == "2")
    var changes = model.store.changes(includingOwnWrites: true).makeAsyncIterator()
    model.theme = .system
    #expect(await changes.next()?[Keys.theme]?.new == .system)
  }

  @Test func `a view tracks what it reads`() throws {
    let store = try makeStore()
    @Stored(Keys.theme, in: store) var theme
    let (changes, continuation) = AsyncStream<Void>.makeStream()
    withObservationTracking {
      _ = store[Keys.theme]
    } onChange: {
      continuation.finish()
    }
    theme = .dark
    _ = changes
    #expect(store[Keys.theme] == .dark)
  }
}
