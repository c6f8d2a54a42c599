import Synchronization
import Testing

@testable import Kith

/// The property wrapper: an assignment is a write, and one that is refused is told, not lost.
@Suite(.timeLimit(.minutes(5)))
struct StoredTests {
  struct Settings {
    @Stored var theme: Theme
    @Stored var count: Int

    init(_ store: KeyValueStore) {
      _theme = Stored(.theme, in: store)
      _count = Stored(.count, in: store)
    }
  }

  @Test func anAssignmentWritesAtOnceAndTheDefaultIsNeverWritten() throws {
    let store = try EngineFixture().store
    let settings = Settings(store)
    #expect(settings.theme == .system)
    #expect(store.keys.isEmpty)
    settings.theme = .dark
    #expect(store[.theme] == .dark)
    try store.set(4, for: .count)
    settings.count += 1
    #expect(store[.count] == 5)
    try settings.$theme.reset()
    #expect(settings.theme == .system)
    #expect(store.keys == ["count"])
  }

  @Test func itNeedsNoTypeAroundItAndNoAnnotation() throws {
    let store = try EngineFixture().store
    @Stored(.theme, in: store) var theme
    theme = .dark
    #expect(store[.theme] == .dark)
    #expect($theme.key.name == "theme")
  }

  @Test func aRefusedAssignmentChangesNothingAndIsTold() throws {
    let store = try EngineFixture().store
    let heard = Mutex<[KithError.Code]>([])
    let key = StoreKey("note", default: "")
    @Stored(key, in: store, onRefusal: { error in heard.withLock { $0.append(error.code) } })
    var note
    note = "kept"
    #expect($note.error == nil)
    note = String(repeating: "x", count: 2_000_000)
    #expect(note == "kept")
    #expect($note.error?.code == .valueTooLarge)
    #expect($note.error?.key == "note")
    #expect(heard.withLock { $0 } == [.valueTooLarge])
    let error = #expect(throws: KithError.self) {
      try $note.set(String(repeating: "y", count: 2_000_000))
    }
    #expect(error?.code == .valueTooLarge)
    note = "next"
    #expect($note.error == nil)
    #expect(store[key] == "next")
  }

  @Test func valuesAreThoseOfTheKey() async throws {
    let store = try EngineFixture().store
    let settings = Settings(store)
    var values = settings.$count.values.makeAsyncIterator()
    #expect(await values.next() == 0)
    settings.count = 3
    #expect(await values.next() == 3)
  }
}
