import Kith
import KithTesting
import Testing

// The code of the guide to changing types.

struct EditorWindow: StoreValue {
  var width = 800, height = 600
  var isMaximized = false  // new in this version
}
extension StoreKey where Value == EditorWindow {
  static var editorWindow: Self { .init("window", default: EditorWindow()) }
}

struct Bookmark: StoreValue {
  var url = "", title = ""
  var isPinned = false  // new in this version
  static var memberDefaults: Self? { Self() }
}

struct Margins: StoreValue { var top = 10, bottom = 10 }
let margins = StoreKey("margins", default: Margins()) { old in
  if case .integer(let both) = old { Margins(top: Int(both), bottom: Int(both)) } else { nil }
}

func replace(_ store: KeyValueStore, suggestUpdate: () -> Void) async throws {
  if store.isUnreadable(.theme) { suggestUpdate() }

  try await store.commit {
    if $0.isUnreadable(.theme) { $0.reset(.theme) }
    $0[.theme] = .dark
  }
}

@Suite struct ChangedTypeExamples {
  @Test func `the examples of the guide to changing types`() async throws {
    let store = try TestAccount(devices: 1)[0].store("com.example.Editor")
    try store.set(["width": 1_000, "height": 700], forKey: "window")
    #expect(store[.editorWindow].width == 1_000 && !store[.editorWindow].isMaximized)
    try store.set(7, forKey: "margins")
    #expect(store[margins].bottom == 7)
    try store.set("sepia", forKey: "theme")
    var isSuggested = false
    try await replace(store) { isSuggested = true }
    #expect(isSuggested && store[.theme] == .dark)
  }
}
