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
  private func roundTrip<Value: StoreValue & Equatable>(_ value: Value) throws {
    let encoded = try value.propertyListValue()
    #expect(Value(propertyListValue: encoded) == value)
  }

  @Test func valuesComeBack() throws {
    try roundTrip(true)
    try roundTrip(-3)
    try roundTrip(Int64.min)
    try roundTrip(2.5)
    try roundTrip("text")
    try roundTrip(Date(timeIntervalSinceReferenceDate: 12.25))
    try roundTrip(Data([0, 255]))
    try roundTrip(UUID())
    try roundTrip(try #require(URL(string: "https://example.com/")))
    try roundTrip([["a": 1], [:]])
    try roundTrip(Theme.dark)
    try roundTrip(CodableTheme.dark)
    try roundTrip(Window())
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
