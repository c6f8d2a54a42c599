import Foundation
import Testing

@testable import KithCore

@Suite("Property-list values")
struct PropertyListValueTests {
  @Test func `doubles and dates compare by their bits`() {
    #expect(PropertyListValue.double(.nan) == .double(.nan))
    #expect(PropertyListValue.double(.nan) != .double(-.nan))
    #expect(PropertyListValue.double(0.0) != .double(-0.0))
    #expect(PropertyListValue.double(.nan).hashValue == PropertyListValue.double(.nan).hashValue)
    let nowhen = Date(timeIntervalSinceReferenceDate: .nan)
    #expect(PropertyListValue.date(nowhen) == .date(nowhen))
  }

  @Test func `strings compare by their bytes`() {
    #expect("\u{E9}" == "e\u{301}")
    #expect(PropertyListValue.string("\u{E9}") != .string("e\u{301}"))
    #expect(PropertyListValue.dictionary(["\u{E9}": 1]) != .dictionary(["e\u{301}": 1]))
    #expect(PropertyListValue.dictionary(["\u{E9}": 1]) == .dictionary(["\u{E9}": 1]))
  }

  @Test func `kinds differ even where Swift's numbers would be equal`() {
    let same: [PropertyListValue] = [true, 1, 1.0, "1"]
    #expect(Set(same).count == 4)
    #expect(PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 1)) != .double(1))
  }

  @Test func `equal dictionaries hash alike, however they were built`() {
    let keys = (0..<50).map { "key \($0)" }
    var forwards: [String: PropertyListValue] = [:]
    var backwards: [String: PropertyListValue] = [:]
    for (index, key) in keys.enumerated() { forwards[key] = .integer(Int64(index)) }
    for (index, key) in keys.enumerated().reversed() { backwards[key] = .integer(Int64(index)) }
    #expect(PropertyListValue.dictionary(forwards) == .dictionary(backwards))
    #expect(
      PropertyListValue.dictionary(forwards).hashValue
        == PropertyListValue.dictionary(backwards).hashValue)
  }

  @Test func `of a literal's repeated key the later value stands`() {
    let value: PropertyListValue = ["a": 1, "a": 2]
    #expect(value == .dictionary(["a": 2]))
  }
}

extension PropertyListValueTests {
  @Test func `a date that is not finite can be described`() {
    let nowhen = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: .nan))
    #expect("\(["b": [nowhen], "a": [:]] as PropertyListValue)" == #"["a": [:], "b": [date(nan)]]"#)
  }
}
