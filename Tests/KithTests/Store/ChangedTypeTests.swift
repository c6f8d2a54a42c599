import Foundation
import KithTestSupport
import Synchronization
import Testing

@testable import Kith

/// Two versions of a program share a store; each keeps what the other wrote.
@Suite("A type that changes between versions", .timeLimit(.minutes(5)))
struct ChangedTypeTests {
  enum V1 {
    struct Frame: StoreValue, Equatable { var x = 0, title: String? = "none" }
    struct Window: StoreValue, Equatable {
      var width = 800, height = 600
      var title: String? = "untitled"
      var frame = Frame()
    }
    struct Todo: StoreValue, Equatable { var text = "", isDone = false }
    enum Theme: String, StoreValue { case system, dark }
    enum Shape: StoreValue, Equatable {
      case circle(radius: Int)
      case square
    }

    static let window = StoreKey("window", default: Window())
    static let todos = StoreKey<[Todo]>("todos", default: [])
    static let lists = StoreKey<[String: [Todo]]>("lists", default: [:])
    static let last = StoreKey<Todo?>("last")
    static let theme = StoreKey("theme", default: Theme.system)
    static let shape = StoreKey("shape", default: Shape.square)
  }

  enum V2 {
    struct Frame: StoreValue, Equatable {
      var x = 0, title: String? = "none", y = 7
    }
    struct Window: StoreValue, Equatable {
      var width = 800, height = 600
      var title: String? = "untitled"
      var isMaximized = false
      var tags = ["new"]
      var frame = Frame()
      var note: String?
    }
    struct Todo: StoreValue, Equatable {
      var text = "", isDone = false, priority = 3
      static var memberDefaults: Self? { Self() }
    }
    enum Theme: String, StoreValue { case system, dark, sepia }
    enum Shape: StoreValue, Equatable {
      case circle(radius: Int, colour: Colour)
      case square
      struct Colour: StoreValue, Equatable { var name = "black", alpha = 1.0 }
    }

    static let window = StoreKey("window", default: Window())
    static let todos = StoreKey<[Todo]>("todos", default: [])
    static let lists = StoreKey<[String: [Todo]]>("lists", default: [:])
    static let last = StoreKey<Todo?>("last")
    static let theme = StoreKey("theme", default: Theme.system)
  }

  @Test func `members that an older program did not write come from the key's default`()
    async throws
  {
    let store = try EngineFixture().store
    try await store.commit {
      $0[V1.window] = .init(width: 1_234, height: 900, title: nil, frame: .init(x: 5, title: nil))
    }
    let read = store[V2.window]
    #expect(
      read
        == .init(
          width: 1_234, height: 900, title: nil, isMaximized: false, tags: ["new"],
          frame: .init(x: 5, title: nil, y: 7)))
    #expect(!store.isDefault(V2.window) && !store.isUnreadable(V2.window))
    try await store.commit { $0[V2.window].isMaximized = true }
    var expected = read
    expected.isMaximized = true
    #expect(store[V2.window] == expected)
    #expect(store[V1.window].width == 1_234)
  }

  @Test func `an older program's writes keep the members that it does not know`() async throws {
    let store = try EngineFixture().store
    var window = V2.Window()
    window.isMaximized = true
    window.tags = []
    window.frame.y = 9
    window.note = "kept"
    try store.set(window, for: V2.window)
    @Stored(V1.window, in: store) var stored

    try await store.commit { $0[V1.window].width = 1_000 }
    stored.height = 500
    stored.frame.x = 4
    var old = store[V1.window]
    old.title = nil
    try store.set(old, for: V1.window)

    window.width = 1_000
    window.height = 500
    window.frame.x = 4
    window.title = nil
    #expect(store[V2.window] == window)
    #expect(store[V1.window] == old)

    // The whole value, made anew; and a reset, after which nothing is left.
    try store.set(V1.Window(), for: V1.window)
    #expect(store[V2.window].note == "kept" && store[V2.window].title == "untitled")
    try store.reset(V1.window)
    try store.set(V1.Window(), for: V1.window)
    #expect(store[V2.window] == V2.Window())
  }

  /// The window of an older program, while whose encoding another program writes.
  struct Interrupted: StoreValue {
    final class Interruption: Sendable {
      private let body: Mutex<(@Sendable () throws -> Void)?>
      init(_ body: @escaping @Sendable () throws -> Void) { self.body = Mutex(body) }
      func happenOnce() throws { try body.withLock { $0.take() }?() }
    }
    enum CodingKeys: CodingKey { case width }

    static let window = StoreKey("window", default: Interrupted())
    var width = 800
    var interruption: Interruption?

    func encode(to encoder: any Encoder) throws {
      try interruption?.happenOnce()
      var members = encoder.container(keyedBy: CodingKeys.self)
      try members.encode(width, forKey: .width)
    }
  }

  @Test func `an older program keeps a member that another program writes at the same time`()
    async throws
  {
    let served = try await Served()
    let owner = try served.node.store("com.example.test")
    try owner.set(V2.Window(), for: V2.window)
    try await served.run {
      let program = try await served.attach()
      for (number, (older, newer)) in [(owner, program.store), (program.store, owner)].enumerated()
      {
        let interruption = Interrupted.Interruption {
          var window = newer[V2.window]
          window.note = "note \(number)"
          try newer.set(window, for: V2.window)
        }
        try await blocking {
          try older.set(
            Interrupted(width: number, interruption: interruption), for: Interrupted.window)
        }
        #expect(older[V2.window] == V2.Window(width: number, note: "note \(number)"))
        try await eventually { newer[V2.window] == older[V2.window] }
      }
      try await program.close()
    }
    try served.node.close()
  }

  @Test func `in arrays, dictionaries and optionals, members come from the type's own default`()
    async throws
  {
    let store = try EngineFixture().store
    let old = [V1.Todo(text: "a", isDone: true), V1.Todo(text: "b")]
    try await store.commit {
      $0[V1.todos] = old
      $0[V1.lists] = ["home": old]
      $0[V1.last] = old[0]
    }
    let new = [V2.Todo(text: "a", isDone: true), V2.Todo(text: "b")]
    #expect(store[V2.todos] == new)
    #expect(store[V2.lists] == ["home": new])
    #expect(store[V2.last] == new[0])
    #expect(
      store.snapshot.values(prefix: "last", as: V2.Todo.self).map(\.value) == [new[0]])
  }

  @Test func `elements keep what an older program does not know`() async throws {
    let store = try EngineFixture().store
    let texts = ["a", "b", "c", "d"]
    try store.set(
      texts.enumerated().map { V2.Todo(text: $1, priority: 10 + $0) }, for: V2.todos)
    func priorities() -> [String: Int] {
      Dictionary(uniqueKeysWithValues: store[V2.todos].map { ($0.text, $0.priority) })
    }
    // One is changed, one comes first, one goes, and they are sorted anew.
    try await store.commit { $0[V1.todos][1].isDone = true }
    #expect(priorities() == ["a": 10, "b": 11, "c": 12, "d": 13])
    #expect(store[V2.todos][1].isDone)
    try await store.commit { $0[V1.todos].insert(.init(text: "x"), at: 0) }
    #expect(priorities() == ["x": 3, "a": 10, "b": 11, "c": 12, "d": 13])
    try await store.commit { $0[V1.todos].remove(at: 1) }
    #expect(priorities() == ["x": 3, "b": 11, "c": 12, "d": 13])
    try await store.commit { $0[V1.todos].reverse() }
    #expect(store[V2.todos].map(\.text) == ["d", "c", "b", "x"])
    #expect(priorities() == ["x": 3, "b": 11, "c": 12, "d": 13])
    // Another element in one's place gets nothing of it.
    try await store.commit { $0[V1.todos][0] = .init(text: "new", isDone: true) }
    #expect(priorities() == ["x": 3, "b": 11, "c": 12, "new": 3])
    // Equal ones.
    try store.set([V2.Todo(priority: 1), V2.Todo(priority: 2)], for: V2.todos)
    try await store.commit { $0[V1.todos].append(.init()) }
    #expect(store[V2.todos].map(\.priority) == [1, 2, 3])

    try store.set(["home": [V2.Todo(text: "a", priority: 8)], "gone": []], for: V2.lists)
    try await store.commit {
      $0[V1.lists]["home"]?.append(.init(text: "b"))
      $0[V1.lists]["gone"] = nil
    }
    #expect(
      store[V2.lists] == [
        "home": [V2.Todo(text: "a", priority: 8), V2.Todo(text: "b")]
      ])
  }

  @Test func `an enum's payload keeps its members, and no other case gets them`() async throws {
    let store = try EngineFixture().store
    let key = StoreKey("shape", default: V2.Shape.square)
    let blue = V2.Shape.circle(radius: 3, colour: .init(name: "blue"))
    try store.set(blue, for: key)
    #expect(store[V1.shape] == .circle(radius: 3))
    try store.set(.circle(radius: 4), for: V1.shape)
    #expect(store[key] == .circle(radius: 4, colour: .init(name: "blue")))
    try store.set(.square, for: V1.shape)
    #expect(store[key] == .square)
    // A payload's new member: from the default, if it is of that case.
    try store.set(.circle(radius: 5), for: V1.shape)
    #expect(store.isUnreadable(key))
    let other = StoreKey("shape", default: blue)
    #expect(store[other] == .circle(radius: 5, colour: .init(name: "blue")))
  }

  @Test func `a migration reads another form, and only a write changes it`() async throws {
    let store = try EngineFixture().store
    let asked = Atomic<Int>(0)
    struct Size: StoreValue, Equatable { var width = 1, height = 2 }
    let size = StoreKey("size", default: Size()) { old in
      asked.add(1, ordering: .relaxed)
      return switch old {
      case .integer(let side): Size(width: Int(side), height: Int(side))
      case .dictionary(let members) where members["side"] != nil: Size(width: 7, height: 7)
      default: nil
      }
    }
    try store.set(5, forKey: "size")
    #expect(store[size] == Size(width: 5, height: 5))
    #expect(!store.isDefault(size) && !store.isUnreadable(size))
    #expect(store.value(forKey: "size") == 5)
    try await store.commit { $0[size].height += 1 }
    #expect(store.value(forKey: "size") == ["width": 5, "height": 6])
    let count = asked.load(ordering: .relaxed)
    #expect(store[size] == Size(width: 5, height: 6))
    #expect(asked.load(ordering: .relaxed) == count, "it is asked only about what cannot be read")
    // Before the defaults, which would read it too; none of the old form's members stays.
    try store.set(["side": 7], forKey: "size")
    #expect(store[size] == Size(width: 7, height: 7))
    try store.set(Size(width: 8, height: 8), for: size)
    #expect(store.value(forKey: "size") == ["width": 8, "height": 8])
    // What it cannot read either.
    try store.set(["width": 9], forKey: "size")
    #expect(store[size] == Size(width: 9, height: 2))
    try store.set("large", forKey: "size")
    #expect(store[size] == Size() && store.isUnreadable(size))
  }

  @Test func `a missing key is told from one that cannot be read`() async throws {
    let store = try EngineFixture().store
    @Stored(V1.theme, in: store) var theme
    #expect(store.isDefault(V1.theme) && !store.isUnreadable(V1.theme))
    try store.set(.sepia, for: V2.theme)
    #expect(store[V1.theme] == .system)
    #expect(store.isDefault(V1.theme) && store.isUnreadable(V1.theme))
    #expect($theme.isUnreadable)
    #expect(try await store.commit { $0.isUnreadable(V1.theme) && !$0.isUnreadable(V2.theme) })
  }

  @Test func `a value that cannot be read is not changed by a member`() async throws {
    struct Session: StoreValue, Equatable { var id: Int, user = "" }
    let store = try EngineFixture().store
    let sessions = StoreKey<[Session]>("sessions", default: [])
    let newer: PropertyListValue = [["uuid": "x"]]
    try store.set(newer, forKey: "sessions")
    let heard = Mutex<[KithError.Code]>([])
    struct Settings {
      @Stored var sessions: [Session]
      init(_ stored: Stored<[Session]>) { _sessions = stored }
    }
    let settings = Settings(
      Stored(sessions, in: store) { error in heard.withLock { $0.append(error.code) } })

    for body in [
      { $0[sessions].append(Session(id: 1)) },
      { $0[sessions] = $0[sessions] + [Session(id: 1)] },
    ] as [(inout KeyValueStore.Transaction) -> Void] {
      let error = await #expect(throws: KithError.self) {
        try await store.commit { transaction throws(KithError) in
          body(&transaction)
          transaction.set(1, forKey: "other")
        }
      }
      #expect(error?.code == .unreadable && error?.key == "sessions")
    }
    settings.sessions.append(Session(id: 1))
    #expect(heard.withLock { $0 } == [.unreadable])
    #expect(settings.$sessions.error?.code == .unreadable)
    #expect(store.dictionary == ["sessions": newer])

    // The program says so.
    try await store.commit {
      if $0.isUnreadable(sessions) { $0.reset(sessions) }
      $0[sessions].append(Session(id: 1))
    }
    #expect(store[sessions] == [Session(id: 1)])
    try store.set(newer, forKey: "sessions")
    try await store.commit { $0[sessions] = [Session(id: 2)] }
    try store.set(newer, forKey: "sessions")
    settings.sessions = [Session(id: 3)]
    #expect(settings.$sessions.error == nil)
    try store.set(newer, forKey: "sessions")
    try store.set([Session(id: 4)], for: sessions)
    #expect(store[sessions] == [Session(id: 4)])
  }

  /// The kept members are of the value that the write replaces, whoever wrote it.
  @Test func `members that come while a transaction runs are kept`() async throws {
    let store = try EngineFixture().store
    try store.set(V2.Window(), for: V2.window)
    var runs = 0
    try await store.commit {
      runs += 1
      $0[V1.window] = V1.Window(width: 1)
      var newer = V2.Window()
      newer.note = "meanwhile"
      if runs == 1 { try store.set(newer, for: V2.window) }
    }
    #expect(store[V2.window].note == "meanwhile" && store[V2.window].width == 1)
  }
}
