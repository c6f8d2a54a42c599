import Testing

@testable import Kith

extension StoreKey where Value == String? {
  fileprivate static var draft: Self { .init("draft") }
}

/// Keys of optional types: nil is the key's absence, never a value.
struct OptionalValueTests {
  @Test func nilRemovesTheKey() throws {
    let store = try EngineFixture().store
    #expect(store[.draft] == nil)
    try store.set("words", for: .draft)
    #expect(store[.draft] == "words")
    try store.set(nil, for: .draft)
    #expect(store.keys.isEmpty)
  }

  @Test func nilInATransactionRemovesTheKey() async throws {
    let store = try EngineFixture().store
    try await store.commit { $0[.draft] = "words" }
    #expect(store[.draft] == "words")
    let seen = try await store.commit { (transaction) throws(KithError) in
      transaction[.draft] = nil
      return transaction[.draft]
    }
    #expect(seen == nil)
    #expect(store.keys.isEmpty)
    try await store.commit {
      $0[.theme] = .dark
      $0[.draft] = "words"
    }
    try await store.commit {
      $0[.theme] = .system
      $0.reset(.draft)
    }
    #expect(store.dictionary == ["theme": "system"])
  }

  @Test func aValueOfAnotherTypeReadsAsNilAndStays() throws {
    let store = try EngineFixture().store
    try store.set(7, forKey: "draft")
    #expect(store[.draft] == nil)
    #expect(store.value(forKey: "draft") == 7)
  }

  @Test func nilInsideAContainerIsRefused() {
    let inArray = #expect(throws: KithError.self) { try [1, nil].storedValue() }
    #expect(inArray?.code == .unsupportedValue)
    let members: [String: Int?] = ["a": nil]
    let inDictionary = #expect(throws: KithError.self) { try members.storedValue() }
    #expect(inDictionary?.code == .unsupportedValue)
    #expect([Int?](propertyListValue: [1, 2]) == [1, 2])
  }
}
