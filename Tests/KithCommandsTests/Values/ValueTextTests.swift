import Foundation
import KithCore
import Testing

@testable import KithCommands

@Suite("Values as typed text")
struct ValueTextTests {
  @Test(
    arguments: [
      ("true", true), ("-5", -5), ("1.0", 1.0), ("007", "007"), ("+1", "+1"), ("0.5", 0.5),
      ("1e+16", 1e16), ("-0.0", -0.0), ("{\"a\": [1, 0.5]}", ["a": [1, 0.5]]),
      ("12345678901234567890", "12345678901234567890"), ("[1,true]", [1, true]), ("[x", "[x"),
      (#""true""#, "true"), ("truest", "truest"), ("", ""), ("nan", "nan"), ("{}", [:]),
    ] as [(String, PropertyListValue)])
  func automatic(text: String, value: PropertyListValue) throws {
    #expect(try ValueText.parse(text) == value)
  }

  @Test(arguments: [
    "3.10", "1e3", "123e45", "-0", "1E5", "1.00", "0.50", "1e16", "12345678901234567890.5", "5 ",
    "true ", "[1.10]", "{\"a\": [1e3]}", "[-0]", "[12345678901234567890.5]",
  ])
  func `text that a number would change stays a string`(text: String) throws {
    #expect(try ValueText.parse(text) == .string(text))
    #expect(try ValueText.text(ValueText.parse(text)) == text)
  }

  @Test func `types asked for`() throws {
    #expect(try ValueText.parse("yes", as: .bool) == true)
    #expect(try ValueText.parse("5", as: .double) == 5.0)
    #expect(try ValueText.parse("5", as: .string) == "5")
    #expect(try ValueText.parse("0x00ff", as: .data) == .data(Data([0, 255])))
    #expect(try ValueText.parse("AP8=", as: .data) == .data(Data([0, 255])))
    let day = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 816_944_400.5))
    #expect(try ValueText.parse("2026-11-21T10:00:00.5+01:00", as: .date) == day)
    #expect(try ValueText.parse("<plist><true/></plist>", as: .plist) == true)
  }

  @Test(arguments: [
    (ValueType.bool, "maybe"), (.integer, "1.5"), (.double, "0x1"), (.double, "1e999"),
    (.date, "2026-02-30"), (.date, "1900-02-29"), (.date, "2026-13-01"), (.date, "2026-00-01"),
    (.date, "0000-01-01"), (.date, "2026-01-01T24:00"), (.date, "tomorrow"), (.data, "0x0"),
    (.data, "???"), (.json, "{"),
    (.plist, "no"),
  ])
  func `a refusal says what was expected`(type: ValueType, text: String) {
    let error = #expect(throws: ValueTextError.self) { try ValueText.parse(text, as: type) }
    #expect(error?.description.contains("is not \(type.expectation)") == true)
    #expect(error?.description.hasSuffix("for example: \(type.example)") == true)
  }
}
