import Foundation
import KithCore
import KithTestSupport
import KithValues
import Testing

@testable import KithCommands

@Suite("Values as JSON")
struct ValueJSONTests {
  static let forms: [(PropertyListValue, String)] = [
    (true, "true"), (1, "1"), (.integer(.min), "-9223372036854775808"), (1.0, "1.0"),
    (-0.0, "-0.0"), (1e16, "1e+16"), (.double(.nan), #"{"$double":"nan"}"#),
    (.double(-.infinity), #"{"$double":"-inf"}"#),
    (.double(Double(bitPattern: 0x7FF8_0000_0000_0001)), #"{"$double":"0x7ff8000000000001"}"#),
    ("a\"\\\n\u{1}é", #""a\"\\\n\u0001é""#), (.data(Data([0, 1, 2])), #"{"$data":"AAEC"}"#),
    (date(0), #"{"$date":"2001-01-01T00:00:00Z"}"#),
    (date(-0.25), #"{"$date":"2000-12-31T23:59:59.75Z"}"#),
    (date(816_948_000.123), #"{"$date":"2026-11-21T10:00:00.123Z"}"#),
    (date(-0.0), #"{"$date":-0.0}"#), (date(.nan), #"{"$date":{"$double":"nan"}}"#),
    (date(1e300), #"{"$date":1e+300}"#),
    (date(-63_113_904_000), #"{"$date":"0001-01-01T00:00:00Z"}"#),
    (date(-63_113_904_000.5), #"{"$date":{"$double":"0xc22d63c37f010000"}}"#),
    (date(252_423_993_599.5), #"{"$date":"9999-12-31T23:59:59.5Z"}"#),
    (date(252_423_993_600), #"{"$date":{"$double":"0x424d62d23c800000"}}"#),
    (date(1e14), #"{"$date":100000000000000.0}"#), (date(1e-5), #"{"$date":1e-05}"#),
    (date(-26_524_800), #"{"$date":"2000-02-29T00:00:00Z"}"#),
    (["$date": 1], #"{"$dictionary":{"$date":1}}"#), (["$date": 1, "b": 2], #"{"$date":1,"b":2}"#),
    ([[], [:], ["b": 1, "a": [2]]], #"[[],{},{"a":[2],"b":1}]"#),
  ]

  static func date(_ seconds: Double) -> PropertyListValue {
    .date(Date(timeIntervalSinceReferenceDate: seconds))
  }

  @Test(arguments: forms)
  func `one form for each value`(value: PropertyListValue, json: String) throws {
    #expect(ValueJSON.text(value) == json)
    #expect(try ValueJSON.value(json) == value)
  }

  @Test func `doubles and dates keep every bit`() throws {
    let seed = testSeed("doubles and dates")
    var state = seed
    for round in 0..<5_000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let any = Double(bitPattern: state)
      let recent = Double(Int64(bitPattern: state) >> 20) / 4_096.0 / Double(round + 1)
      for value in [.double(any), Self.date(any), Self.date(recent)] as [PropertyListValue] {
        #expect(try ValueJSON.value(ValueJSON.text(value)) == value, "seed \(seed)")
      }
    }
  }

  /// Every character of Unicode, as a value and as a key.
  @Test func `characters that a terminal would obey are escaped, and read back as they were`()
    throws
  {
    for value in (0...0x10FFFF as ClosedRange<UInt32>) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = "a" + String(scalar)
      let json = ValueJSON.text([text: .string(text)])
      let isObeyed =
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
      if isObeyed { #expect(!json.unicodeScalars.contains(scalar), "\(json)") }
      guard case .dictionary(let read) = try ValueJSON.value(json),
        case .string(let again)? = read[text], again.utf8.elementsEqual(text.utf8)
      else {
        Issue.record("U+\(String(value, radix: 16)) comes back as another: \(json)")
        continue
      }
    }
    #expect(ValueJSON.text("\u{9B}1m\u{202E}\u{7F}") == #""\u009b1m\u202e\u007f""#)
    #expect(ValueJSON.text("👨\u{200D}👩") == "\"👨\u{200D}👩\"")
  }

  /// Other programs mean milliseconds or seconds since 1970.
  @Test(arguments: [
    "1439514154000.5", "1.439514154e12", "1439514154000", "1439514154.5", "0.5", "0.0",
    "-63113904000.5",
  ])
  func `a number that Kith would not write is no date`(seconds: String) {
    let error = #expect(throws: NotAValue.self) {
      try ValueJSON.value(#"[{"$date":"# + seconds + "}]")
    }
    #expect(error?.description.contains("[0]") == true)
  }

  @Test(arguments: [
    ("9007199254740993.0", false), ("9007199254740992.0", true), ("12345678901234567890.5", false),
    ("3.14159265358979323846264338328", false), ("64.146600000000006", true), ("0.1", true),
    ("0.10000000000000001", true),
    ("0.1000000000000000055511151231257827", true),
    ("0.10000000000000002", true), ("0.30000000000000004", true), ("1.10e0", true),
    ("99999999999999991611392.0", true), ("1e23", true), ("9.9999999999999992e22", true),
    ("5e-324", true), ("4.9406564584124654e-324", true), ("6e-324", false),
    ("1.7976931348623157e308", true), ("1.7976931348623158e308", false), ("0.000e5", true),
    ("9007199254740992.5", false), ("2.5", true), ("123456.7890625", true),
  ])
  func `a number of which a double would lose digits is refused`(
    text: String, isKept: Bool
  ) throws {
    let double = try #require(Double(text))
    #expect(double.keeps(text) == isKept)
    #expect(double.keeps("-" + text) == isKept)
    let value = try? ValueJSON.value(text)
    #expect(value == (isKept ? .double(double) : nil))
  }

  @Test(arguments: [
    ("2026-11-21T10:00:00.123456Z", true), ("2026-11-21T10:00:00.123456789Z", false),
    ("2026-11-21T10:00:00.10000000000000000000Z", true),
    ("2026-11-21T10:00:00.12345678901234567890Z", false),
    ("2000-12-31T23:59:59.123456789Z", true), ("1999-12-31T23:59:59.123456789Z", false),
    ("1700-01-01T00:00:00.000001Z", false), ("9999-12-31T23:59:59.9999999Z", false),
  ])
  func `a date of which a double would lose decimals is refused`(
    text: String, isKept: Bool
  ) throws {
    let date = ISO8601Text.date(text).map(PropertyListValue.date)
    #expect((date != nil) == isKept)
    let value = try? ValueJSON.value(#"{"$date":""# + text + #""}"#)
    #expect(value == date)
  }

  /// A file of such numbers took half an hour.
  @Test func `numbers with many digits and a large exponent are read at once`() throws {
    let number = "1.2345678901234567e-300"
    let text = "[" + Array(repeating: number, count: 5_000).joined(separator: ",") + "]"
    let value = PropertyListValue.double(try #require(Double(number)))
    let isRead = try ValueJSON.value(text) == .array(Array(repeating: value, count: 5_000))
    #expect(isRead)
  }

  @Test func `all that other programs print of a double is kept`() {
    let seed = testSeed("printed doubles")
    var state = seed
    for _ in 0..<500 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let double = Double(bitPattern: state)
      guard double.isFinite else { continue }
      for text in [
        double.description, String(format: "%.17g", double), String(format: "%.16e", double),
      ] {
        #expect(double.keeps(text), "seed \(seed): \(text)")
      }
    }
  }

  @Test func `other programs' JSON`() throws {
    let indented = "{\n  \"a\": [\n    1,\n    {\"$data\": \"\"}\n  ],\n  \"b\": {}\n}"
    #expect(try ValueJSON.value(indented) == ["b": [:], "a": [1, .data(Data())]])
    #expect(try ValueJSON.value("9223372036854775808.0") == .double(9_223_372_036_854_775_808))
    let large = #expect(throws: NotAValue.self) {
      try ValueJSON.value("[9223372036854775808]")
    }
    #expect(large?.description.contains("does not fit in 64 bits") == true)
    #expect(try ValueJSON.value(#""\ud83e\udded\/""#) == "🧭/")
    for bad in [
      "", "01", "1.", "+1", "nul", "null", "[1,]", "{\"a\":1,\"a\":2}", #""\ud800""#, "\"\u{1}\"",
      "1 2", "1e999", "1e-400", "-0.001e-330", "// x\n1", #"{"$data":"===="}"#,
      #"{"$data":"AAEC="}"#,
      #"{"$data":"AB=="}"#, #"{"$data":"AAB="}"#, #"{"$data":"AA EC"}"#, #"{"$date":1e-400}"#,
      #"{"$date":"soon"}"#, #"{"$date":5}"#, "-0", "[-0]", #"{"$double":"0x+000000000000001"}"#,
      #"{"$double":"0x-000000000000001"}"#,
      String(repeating: "[", count: 100_000),
    ] {
      #expect(throws: (any Error).self, "\(bad.prefix(20))") { try ValueJSON.value(bad) }
    }
    let long = #expect(throws: NotAValue.self) {
      try ValueJSON.value("1" + String(repeating: "0", count: 5_000) + ".0")
    }
    #expect(long?.description.count ?? .max < 100)
    let error = #expect(throws: JSONSyntaxError.self) { try ValueJSON.value("{\n  \"a\" 1}") }
    #expect(error?.description == "line 2, column 7: expected : after the key")
  }
}

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

  @Test(arguments: [
    "{\"a\":1,\"a\":2}", "{\"$date\":1439514154000}", "[1,2", "{\"a\": 1.10}", "[null]", "{",
    "[section]",
    "{\"$data\":\"====\"}", "[1] ",
  ])
  func `a text that looks like JSON and is kept as a string says why`(text: String) throws {
    let value = try ValueText.parse(text)
    let isString = value == .string(text)
    #expect(isString == (ValueText.reasonAgainstJSON(text, value) != nil))
  }

  @Test(arguments: ["{}", "[1, 2]", "text", "3.10", "", " {", "\"{\""])
  func `other texts say nothing`(text: String) throws {
    #expect(ValueText.reasonAgainstJSON(text, try ValueText.parse(text)) == nil)
  }

  @Test func `types asked for`() throws {
    #expect(try ValueText.parse("yes", as: .bool) == true)
    #expect(try ValueText.parse("5", as: .double) == 5.0)
    #expect(try ValueText.parse("5e-324", as: .double) == .double(.leastNonzeroMagnitude))
    #expect(try ValueText.parse("-0e-400", as: .double) == -0.0)
    #expect(try ValueText.parse("5", as: .string) == "5")
    #expect(try ValueText.parse("0x00ff", as: .data) == .data(Data([0, 255])))
    #expect(try ValueText.parse("AP8=", as: .data) == .data(Data([0, 255])))
    let day = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 816_944_400.5))
    for offset in ["+01:00", "+0100", "+01"] {
      #expect(try ValueText.parse("2026-11-21T10:00:00.5" + offset, as: .date) == day)
    }
    #expect(try ValueText.parse("<plist><true/></plist>", as: .plist) == true)
  }

  @Test(arguments: [
    (ValueType.bool, "maybe"), (.integer, "1.5"), (.double, "0x1"), (.double, "1e999"),
    (.date, "2026-02-30"), (.date, "1900-02-29"), (.date, "2026-13-01"), (.date, "2026-00-01"),
    (.date, "0000-01-01"), (.date, "2026-01-01T24:00"), (.date, "tomorrow"), (.data, "0x0"),
    (.date, "2026-01-01T10:00+01:"), (.date, "2026-01-01T10:00+1"),
    (.date, "2026-11-21T10:00:00.123456789Z"),
    (.data, "???"), (.data, "===="), (.data, "AB=="), (.data, "AAEC="), (.double, "1e-400"),
    (.double, "0xAp-2000"), (.double, "nan(1)"),
    (.json, "{"),
    (.plist, "no"),
  ])
  func `a refusal says what was expected`(type: ValueType, text: String) {
    let error = #expect(throws: ValueTextError.self) { try ValueText.parse(text, as: type) }
    #expect(error?.description.contains("is not \(type.expectation)") == true)
    #expect(error?.description.hasSuffix("for example: \(type.example)") == true)
  }
}
