import Foundation
import Testing

@testable import Kith

extension StoreKey where Value == Theme {
  static var theme: Self { .init("theme", default: .system) }
}

extension StoreKey where Value == Int {
  static var count: Self { .init("count", default: 0) }
}

@Suite(.timeLimit(.minutes(5)))
struct TypedStoreTests {
  @Test func aDefaultIsReturnedAndNeverWritten() async throws {
    let store = try EngineFixture().store
    #expect(store[.theme] == .system)
    #expect(store.keys.isEmpty)
    try store.set(.dark, for: .theme)
    #expect(store[.theme] == .dark)
    try store.set("pink", forKey: "theme")
    #expect(store[.theme] == .system)
    try store.reset(.theme)
    #expect(store.keys.isEmpty)
  }

  @Test func aTransactionSeesItsOwnWritesAndFailsWhole() async throws {
    let store = try EngineFixture().store
    let seen = try await store.commit { transaction throws(KithError) in
      transaction[.count] += 1
      transaction[.count] += 1
      return transaction[.count]
    }
    #expect(seen == 2)
    await #expect(throws: KithError.self) {
      try await store.commit {
        $0[.count] = 7
        $0.set(1, forKey: "")
      }
    }
    #expect(store[.count] == 2)
  }

  @Test func valuesComeFromNowOnUntilTheEnd() async throws {
    let fixture = try EngineFixture()
    let store = fixture.store
    var values = store.values(for: .count).makeAsyncIterator()
    #expect(await values.next() == 0)
    for number in 1...200 { try store.set(number, for: .count) }
    #expect(await values.next() == 200)
    try fixture.engine.close()
    var rest = store.values(for: .count).makeAsyncIterator()
    #expect(await rest.next() == 200)
    #expect(await rest.next() == nil)
  }

  /// A second loop began with the value of when the sequence was made, and missed the change that the
  /// first had taken; beside a first that waited, it ended at once.
  @Test func `each loop over the same values begins with the newest and misses nothing`()
    async throws
  {
    let fixture = try EngineFixture()
    let store = fixture.store
    let values = store.values(for: .count)
    for number in 1...2 {
      try store.set(number, for: .count)
      for await value in values {
        #expect(value == number)
        break
      }
    }
    var (first, second) = (values.makeAsyncIterator(), values.makeAsyncIterator())
    #expect(await first.next() == 2)
    #expect(await second.next() == 2)
    try store.set(3, for: .count)
    #expect(await first.next() == 3)
    #expect(await second.next() == 3)
  }
}

enum Theme: String, StoreValue { case system, dark }

struct Window: Codable, StoreValue, Equatable {
  struct Frame: Codable, Equatable { var width = 3, height: Double? = nil }
  var frames = [Frame()]
  var titles: [String: Date] = ["a": Date(timeIntervalSinceReferenceDate: 1.5)]
  var blob = Data([1, 2])
  var link: URL? = URL(string: "https://example.com/a")
  var theme: CodableTheme = .dark
}

enum CodableTheme: Int, Codable, StoreValue { case light, dark }

struct StoreValueTests {
  private func roundTrip<Value: StoreValue & Equatable>(
    _ value: Value, _ stored: PropertyListValue
  ) throws {
    #expect(try value.storedValue() == stored)
    #expect(Value(propertyListValue: stored) == value)
  }

  @Test func valuesComeBack() throws {
    let (date, data, id) = (Date(timeIntervalSinceReferenceDate: 12.25), Data([0, 255]), UUID())
    try roundTrip(true, true)
    try roundTrip(-3, -3)
    try roundTrip(Int64.min, .integer(.min))
    try roundTrip(2.5, 2.5)
    try roundTrip("text", "text")
    try roundTrip(date, .date(date))
    try roundTrip([data], [.data(data)])
    try roundTrip(id, .string(id.uuidString))
    try roundTrip(try #require(URL(string: "https://example.com/")), "https://example.com/")
    try roundTrip([["a": 1], [:]], [["a": 1], [:]])
    try roundTrip(PropertyListValue.date(date), .date(date))
    try roundTrip(Theme.dark, "dark")
    try roundTrip(CodableTheme.dark, 1)
    try roundTrip(
      Window(),
      [
        "frames": [["width": 3]], "titles": ["a": .date(Date(timeIntervalSinceReferenceDate: 1.5))],
        "blob": .data(Data([1, 2])), "link": "https://example.com/a", "theme": 1,
      ])
  }

  @Test func otherTypesGiveNil() {
    #expect(Int(propertyListValue: "1") == nil)
    #expect(Bool(propertyListValue: 1) == nil)
    #expect(Theme(propertyListValue: "pink") == nil)
    #expect(Window(propertyListValue: [:]) == nil)
    #expect(Int(propertyListValue: 1.5) == nil)
    #expect([Int](propertyListValue: [1, "2"]) == nil)
  }
}

/// Numbers of every width: what fits comes back, what does not is no value of the type.
struct NumberValueTests {
  @Test func integersOfEveryWidthComeBack() throws {
    func roundTrip<Value: StoreValue & FixedWidthInteger>(_ type: Value.Type) throws {
      for value in [Value.min, 0, 1] {
        #expect(try value.storedValue() == .integer(Int64(value)))
        #expect(Value(propertyListValue: .integer(Int64(value))) == value)
      }
    }
    try roundTrip(Int.self)
    try roundTrip(Int8.self)
    try roundTrip(Int16.self)
    try roundTrip(Int32.self)
    try roundTrip(Int64.self)
    try roundTrip(UInt.self)
    try roundTrip(UInt8.self)
    try roundTrip(UInt16.self)
    try roundTrip(UInt32.self)
    try roundTrip(UInt64.self)
  }

  @Test func integersOutOfRangeAreOfAnotherType() {
    #expect(Int8(propertyListValue: 128) == nil)
    #expect(UInt(propertyListValue: -1) == nil)
    #expect(UInt16(propertyListValue: 65_536) == nil)
    #expect(Int32(propertyListValue: .double(7)) == 7)
    #expect(Int32(propertyListValue: .double(7.5)) == nil)
    #expect(UInt8(propertyListValue: true) == nil)
  }

  @Test func unsignedIntegersBeyondSignedOnesAreRefused() {
    let error = #expect(throws: KithError.self) { try UInt64.max.storedValue() }
    #expect(error?.code == .unsupportedValue)
  }

  @Test func floatsAreExactAsDoublesAndNearestBack() throws {
    #expect(try Float(0.1).storedValue() == .double(Double(Float(0.1))))
    #expect(Float(propertyListValue: .double(0.1)) == 0.1)
    #expect(Float(propertyListValue: 3) == 3)
    #expect(Float(propertyListValue: .double(1e300)) == nil)
    #expect(Float(propertyListValue: .double(.infinity)) == .infinity)
    #expect(Float(propertyListValue: 16_777_217) == nil)
  }
}

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
