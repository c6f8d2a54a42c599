import Foundation
import Kith
import Testing

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
