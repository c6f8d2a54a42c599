import Foundation
import Kith
import Testing

/// Any `Codable` type to a property-list value and back, and the texts of the errors.
struct CodableValueTests {
  struct Place: Codable, Equatable {
    var name: String
    var seen: Date
    var picture: Data
    var link: URL
    var id: UUID
    var marks: [Int: String]
    var note: String?
  }

  @Test func dataDatesAndURLsStayWhatTheyAre() throws {
    let place = Place(
      name: "Pier", seen: Date(timeIntervalSinceReferenceDate: 3.5), picture: Data([1, 2]),
      link: try #require(URL(string: "https://example.com/pier")), id: UUID(), marks: [7: "b"],
      note: nil)
    let value = try PropertyListValue(encoding: place)
    #expect(
      value == [
        "name": "Pier", "seen": .date(place.seen), "picture": .data(place.picture),
        "link": "https://example.com/pier", "id": .string(place.id.uuidString),
        "marks": ["7": "b"],
      ])
    #expect(try value.decoded(as: Place.self) == place)
  }

  @Test func scalarsStandAlone() throws {
    #expect(try PropertyListValue(encoding: 3) == 3)
    #expect(try PropertyListValue(encoding: Date.distantPast) == .date(.distantPast))
    #expect(try PropertyListValue.date(.distantPast).decoded() == Date.distantPast)
    #expect(try PropertyListValue(encoding: ["a", "b"]) == ["a", "b"])
  }

  class Animal: Codable {
    var legs = 4
    init() {}
  }

  final class Dog: Animal {
    var name = "Rex"
    enum Keys: CodingKey { case name }
    override init() { super.init() }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      name = try container.decode(String.self, forKey: .name)
      try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(name, forKey: .name)
      try super.encode(to: container.superEncoder())
    }
  }

  @Test func superclassesHaveAPlaceOfTheirOwn() throws {
    let dog = Dog()
    dog.legs = 3
    let value = try PropertyListValue(encoding: dog)
    #expect(value == ["name": "Rex", "super": ["legs": 3]])
    #expect(try value.decoded(as: Dog.self).legs == 3)
  }

  struct Nested: Codable, Equatable {
    var rows: [[Int]] = [[1], [], [2, 3]]
    enum Keys: CodingKey { case head, rows, tail }
    init() {}
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      let head = try container.nestedContainer(keyedBy: Keys.self, forKey: .head)
      var rows = try head.nestedUnkeyedContainer(forKey: .rows)
      self.rows = []
      while !rows.isAtEnd {
        var row = try rows.nestedUnkeyedContainer()
        var numbers: [Int] = []
        while !row.isAtEnd { numbers.append(try row.decode(Int.self)) }
        self.rows.append(numbers)
      }
    }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      var head = container.nestedContainer(keyedBy: Keys.self, forKey: .head)
      var rows = head.nestedUnkeyedContainer(forKey: .rows)
      for row in self.rows {
        var numbers = rows.nestedUnkeyedContainer()
        for number in row { try numbers.encode(number) }
      }
      // The same container, asked for a second time, keeps its first content.
      var again = container.nestedContainer(keyedBy: Keys.self, forKey: .head)
      try again.encode("end", forKey: .tail)
    }
  }

  @Test func nestedContainersMayBeAskedForTwice() throws {
    let value = try PropertyListValue(encoding: Nested())
    #expect(value == ["head": ["rows": [[1], [], [2, 3]], "tail": "end"]])
    #expect(try value.decoded(as: Nested.self) == Nested())
  }

  @Test func anErrorNamesThePathAndHoldsNoValue() {
    struct Outer: Encodable {
      struct Inner: Encodable { var sizes: [UInt64?] }
      var inner = [Inner(sizes: [1]), Inner(sizes: [2, .max])]
    }
    let tooLarge = #expect(throws: KithError.self) { try PropertyListValue(encoding: Outer()) }
    #expect(tooLarge?.code == .unsupportedValue)
    #expect(tooLarge?.message.contains("at inner.1.sizes.1: ") == true)
    #expect(tooLarge?.cause == nil)
    #expect("\(tooLarge?.message ?? "")".contains("\(UInt64.max)") == false)

    let noValue = #expect(throws: KithError.self) {
      try PropertyListValue(encoding: Outer(inner: [.init(sizes: [nil])]))
    }
    #expect(noValue?.message.contains("at inner.0.sizes.0: ") == true)

    let wrong = #expect(throws: KithError.self) {
      try PropertyListValue.dictionary(["frames": [["width": 1], ["width": "wide"]]])
        .decoded(as: Window.self)
    }
    #expect(wrong?.code == .unsupportedValue)
    #expect(wrong?.message.contains("at frames.1.width: ") == true)
    #expect(wrong?.message.contains("wide") == false)
  }

  @Test func anEmptyTypeHasNoValueUnlessItSaysWhich() throws {
    struct Empty: Codable {}
    struct Silent: Encodable { func encode(to encoder: any Encoder) {} }
    #expect(try PropertyListValue(encoding: Empty()) == [:])
    #expect(throws: KithError.self) { try PropertyListValue(encoding: Silent()) }
  }

  indirect enum Chain: Codable {
    case end
    case link(Chain)
    init(length: Int) { self = length == 0 ? .end : .link(Chain(length: length - 1)) }
    enum Keys: CodingKey { case next }
    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      if case .link(let next) = self { try container.encode(next, forKey: .next) }
    }
    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      self = try container.decodeIfPresent(Chain.self, forKey: .next).map(Self.link) ?? .end
    }
  }

  @Test func whatIsNestedTooDeepIsRefusedBeforeTheStackEnds() throws {
    #expect(throws: Never.self) { try PropertyListValue(encoding: Chain(length: 63)) }
    let error = #expect(throws: KithError.self) {
      try PropertyListValue(encoding: Chain(length: 10_000))
    }
    #expect(error?.code == .unsupportedValue)
  }

  // MARK: A property-list value is Codable itself

  private static let all: PropertyListValue = [
    "bool": true, "integer": 1, "double": 2.5, "whole": .double(3), "text": "é",
    "date": .date(Date(timeIntervalSinceReferenceDate: 3)), "data": .data(Data([1, 2])),
    "array": [1, false, ["x"], [:]], "dictionary": ["a": ["b": []]],
  ]

  struct Envelope: Codable, Equatable, StoreValue {
    var rest: PropertyListValue
    var more: [String: PropertyListValue]
  }

  @Test func `inside Codable types a property-list value stays as it is`() throws {
    let envelope = Envelope(rest: Self.all, more: ["k": Self.all])
    let value = try PropertyListValue(encoding: envelope)
    #expect(value == ["rest": Self.all, "more": ["k": Self.all]])
    #expect(Envelope(propertyListValue: value) == envelope)
    #expect(try PropertyListValue(encoding: Self.all) == Self.all)
  }

  @Test(arguments: [PropertyListSerialization.PropertyListFormat.xml, .binary])
  func `a property list has all but the kind of a whole number`(
    format: PropertyListSerialization.PropertyListFormat
  ) throws {
    let encoder = PropertyListEncoder()
    encoder.outputFormat = format
    var back = try PropertyListDecoder().decode(
      [String: PropertyListValue].self, from: try encoder.encode(Self.all))
    #expect(back["whole"] == 3, "Foundation gives it as an integer, too")
    back["whole"] = .double(3)
    #expect(PropertyListValue.dictionary(back) == Self.all)
  }

  @Test func `JSON has what it can hold`() throws {
    let json = #"{"a":[true,1,2.5,"x",{}],"b":{"c":[]},"big":9223372036854775807}"#
    let value = try JSONDecoder().decode(PropertyListValue.self, from: Data(json.utf8))
    #expect(
      value == [
        "a": [true, 1, 2.5, "x", [:]], "b": ["c": []], "big": .integer(.max),
      ])
    let encoder = JSONEncoder()
    encoder.outputFormatting = .sortedKeys
    #expect(String(decoding: try encoder.encode(value), as: UTF8.self) == json)
    let back = try JSONDecoder().decode(
      PropertyListValue.self, from: try encoder.encode(Self.all))
    guard case .dictionary(let members) = back else { throw TimedOut() }
    #expect(members["date"] == 3, "JSON has no dates")
    #expect(members["data"] == "AQI=", "nor data")
    #expect(members["whole"] == 3, "nor two kinds of numbers")
  }

  @Test func `null and endless nesting are refused`() throws {
    let deep = String(repeating: "[", count: 65) + String(repeating: "]", count: 65)
    for json in ["null", "[null]", #"{"a":null}"#, deep] {
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(PropertyListValue.self, from: Data(json.utf8))
      }
    }
    let allowed = String(deep.dropFirst().dropLast())
    _ = try JSONDecoder().decode(PropertyListValue.self, from: Data(allowed.utf8))
  }
}
