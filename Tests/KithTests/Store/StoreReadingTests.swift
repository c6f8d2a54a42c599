import Foundation
import KithCore
import Testing

@testable import Kith

private enum Keys {
  static let theme = StoreKey("theme", default: Theme.system)
  static let draft = StoreKey<String?>("draft")
}

/// Keys in a namespace, snapshots, prefixes, defaults, and changes by key.
@Suite(.timeLimit(.minutes(5)))
struct StoreReadingTests {
  private struct Tab: Codable, Equatable, StoreValue { var page: Int }

  @Test func `keys are constants of any type`() async throws {
    let store = try EngineFixture().store
    try store.set(.dark, for: Keys.theme)
    #expect(store[Keys.theme] == .dark)
    #expect(store[.theme] == .dark)
    try await store.commit { $0[Keys.draft] = "text" }
    #expect(store[Keys.draft] == "text")
    try store.set(nil, for: Keys.draft)
    #expect(store[Keys.draft] == nil)
    #expect(store.keys == ["theme"])
  }

  @Test func `a key is reset to its default, several all at once`() async throws {
    let store = try EngineFixture().store
    #expect(store.isDefault(.theme))
    try store.set(.system, for: .theme)
    #expect(!store.isDefault(.theme), "it was set, though to the default")
    try store.set("pink", forKey: "theme")
    #expect(store.isDefault(.theme), "of another type")
    try store.set(3, for: .count)
    @Stored(.count, in: store) var count
    #expect(!$count.isDefault)
    var changes = store.changes(includingOwnWrites: true).makeAsyncIterator()
    try store.reset(.theme, .count)
    #expect(store.keys.isEmpty)
    #expect($count.isDefault)
    #expect(await changes.next()?.keys == ["count", "theme"])
    #expect(throws: KithError.self) { try store.reset(StoreKey("", default: 1), .count) }
  }

  @Test func `a snapshot never changes`() async throws {
    let store = try EngineFixture().store
    try await store.commit {
      $0[.theme] = .dark
      $0[.count] = 1
    }
    let before = store.snapshot
    try await store.commit {
      $0[.theme] = .system
      $0[.count] = 2
    }
    #expect(before[.theme] == .dark)
    #expect(before[.count] == 1)
    #expect(before.value(forKey: "count") == 1)
    #expect(store.snapshot.dictionary == store.dictionary)
  }

  @Test func `values of a prefix are those of the type, by bytes`() async throws {
    let store = try EngineFixture().store
    try await store.commit {
      $0.set(["page": 1], forKey: "tab.é")
      $0.set(["page": 2], forKey: "tab.2")
      $0.set("no tab", forKey: "tab.3")
      $0.set(["page": 4], forKey: "table")
      $0.set(["page": 5], forKey: "tab.e\u{301}")
    }
    let tabs = store.snapshot.values(prefix: "tab.", as: Tab.self)
    #expect(
      tabs == [
        "tab.é": Tab(page: 1), "tab.2": Tab(page: 2), "tab.e\u{301}": Tab(page: 5),
      ])
    #expect(store.snapshot.values(prefix: "tab.é", as: Tab.self).count == 1)
    #expect(store.snapshot.values(prefix: "").count == 5)
    #expect(store.snapshot.values(prefix: "tab.3") == ["tab.3": "no tab"])
    #expect(store.snapshot.values(prefix: "x").isEmpty)
  }

  @Test func `a prefix is observed: what comes, changes and goes`() async throws {
    let store = try EngineFixture().store
    var tabs = store.values(prefix: "tab.", as: Tab.self).makeAsyncIterator()
    #expect(await tabs.next() == [:])
    try store.set(["page": 1], forKey: "tab.1")
    #expect(await tabs.next() == ["tab.1": Tab(page: 1)])
    // No news: other keys, other types, the same again.
    try store.set(["page": 1], forKey: "table")
    try store.set(1, forKey: "tab.x")
    try store.set(["page": 1], forKey: "tab.1")
    try await store.commit {
      $0.set(["page": 2], forKey: "tab.2")
      $0.removeValue(forKey: "tab.1")
    }
    #expect(await tabs.next() == ["tab.2": Tab(page: 2)])
  }

  @Test func `the keys that a closure reads are followed without naming them`() async throws {
    let store = try EngineFixture().store
    var titles = store.values(of: { "\($0[.theme]) \($0[.count])" }).makeAsyncIterator()
    #expect(await titles.next() == "system 0")
    try store.set(1, forKey: "other")
    try await store.commit {
      $0[.theme] = .dark
      $0[.count] = 2
    }
    #expect(await titles.next() == "dark 2")
    try store.reset(.theme)
    #expect(await titles.next() == "system 2")
  }

  @Test func `an optional value that goes is an element, and not the end`() async throws {
    let store = try EngineFixture().store
    var drafts = store.values(for: Keys.draft).makeAsyncIterator()
    for draft in [nil, "a", nil, "end"] as [String?] {
      try store.set(draft, for: Keys.draft)
      #expect(await drafts.next() == .some(draft))
    }
  }

  @Test func `own writes are changes if asked for`() async throws {
    let store = try EngineFixture().store
    var all = store.changes(includingOwnWrites: true).makeAsyncIterator()
    var outside = store.changes.makeAsyncIterator()
    try store.set(.dark, for: .theme)
    let change = try #require(await all.next())
    #expect(change.reason == .ownWrite)
    let theme = try #require(change[.theme])
    #expect(theme == (.system, .dark))
    #expect(change[.count] == nil)
    #expect(change[Keys.draft] == nil)
    store.tellFromOutside("theme", "pink")
    let next = try #require(await outside.next())
    #expect(next.reason == .externalChange, "the own write was left out")
    #expect(try #require(next[.theme]) == (.dark, .system), "of another type: the default")
  }
}

extension KeyValueStore {
  /// Has the view show what another device wrote.
  fileprivate func tellFromOutside(_ key: String, _ value: PropertyListValue) {
    let change = ViewChange(
      store: identifier, reason: .externalChange,
      changes: [(KeyValueStore.Key(key), try? EncodedValue(value))])
    for run in view.apply([change]) { run() }
  }
}
