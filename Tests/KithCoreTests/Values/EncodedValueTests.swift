import Foundation
import KithTestSupport
import SwiftProtobuf
import Testing

@testable import KithCore

@Suite("Encoded values")
struct EncodedValueTests {
  static let samples: [PropertyListValue] = [
    true, false, 0, 1, -1, 63, 64, -64, -65, .integer(.min), .integer(.max), 0.0, -0.0, 1.5,
    .double(.nan), .double(.signalingNaN), .double(Double(bitPattern: 0xFFF8_0000_0000_1234)),
    .double(.infinity), .double(-.infinity), .double(.leastNonzeroMagnitude),
    .date(Date(timeIntervalSinceReferenceDate: 0)), .date(.distantPast),
    .date(Date(timeIntervalSinceReferenceDate: 785_000_000.123_456_7)),
    "", "text", "e\u{301}", "\u{E9}", .string(String(repeating: "x", count: 20_000)),
    .data(Data()), .data(Data([0, 255])), .data(Data(repeating: 7, count: 128)),
    [], [:], [[], [:], [1, [2.0, "three"]]], ["": 1, "a": ["": []], "é": [:], "Z": false],
    .nested(64),
  ]

  @Test(arguments: samples)
  func `every value survives encoding`(value: PropertyListValue) throws {
    let encoded = try EncodedValue(value)
    #expect(try encoded.decoded() == value)
    #expect(try EncodedValue(checking: encoded.bytes) == encoded)
    #expect(encoded.size == encoded.bytes.count)
  }

  @Test(arguments: samples)
  func `SwiftProtobuf writes and reads the same bytes`(value: PropertyListValue) throws {
    try expectAgreement(value)
  }

  @Test func `random values agree with SwiftProtobuf`() throws {
    let seed = testSeed("random values")
    var random = SeededGenerator(state: seed)
    for _ in 0..<2_000 {
      let value = PropertyListValue.random(depth: 5, using: &random)
      let encoded = try EncodedValue(value)
      #expect(try encoded.decoded() == value, "seed \(seed)")
      try expectAgreement(value, "seed \(seed)")
    }
  }

  private func expectAgreement(_ value: PropertyListValue, _ comment: Comment? = nil) throws {
    let wire = WireValue(value)
    let encoded = try EncodedValue(value)
    let serialised: [UInt8] = try wire.serializedBytes()
    #expect(encoded.bytes == serialised, comment)
    var options = BinaryDecodingOptions()
    options.messageDepthLimit = 3 * PropertyListValue.maximumDepth + 1
    let read = try WireValue(serializedBytes: encoded.bytes, options: options)
    let again: [UInt8] = try read.serializedBytes()
    #expect(again == encoded.bytes, comment)
  }

  @Test func `known bytes`() throws {
    #expect(try EncodedValue(false).bytes == [0x08, 0])
    #expect(try EncodedValue(-1).bytes == [0x10, 1])
    #expect(try EncodedValue([:]).bytes == [0x42, 0])
    #expect(
      try EncodedValue(["b": true, "a": [1]]).bytes == [
        0x42, 22, 0x0A, 11, 0x0A, 1, 0x61, 0x12, 6, 0x3A, 4, 0x0A, 2, 0x10, 2,
        0x0A, 7, 0x0A, 1, 0x62, 0x12, 2, 0x08, 1,
      ])
  }

  @Test func `64 containers are allowed and 65 are not`() throws {
    #expect(try EncodedValue(.nested(64)).decoded() == .nested(64))
    #expect(throws: ValueError.tooDeep) { try EncodedValue(.nested(65)) }
    let deep: [UInt8] = try WireValue(.nested(65)).serializedBytes()
    #expect(throws: ValueError.tooDeep) { try EncodedValue(checking: deep) }
  }

  @Test func `a hundred thousand levels overflow no stack`() {
    // Lengths that lie, so that every level still finds its container's tag.
    var bytes: [UInt8] = []
    for _ in 0..<100_000 { bytes += [0x3A, 0x7F, 0x0A, 0x7F] }
    #expect(throws: ValueError.self) { try EncodedValue(checking: bytes) }
  }
}

extension WireValue {
  /// The same value as a generated message.
  init(_ value: PropertyListValue) {
    self.init()
    switch value {
    case .bool(let bool): self.bool = bool
    case .integer(let integer): self.integer = integer
    case .double(let double): self.double = double
    case .string(let string): self.string = string
    case .date(let date): self.date = date.timeIntervalSinceReferenceDate
    case .data(let data): self.data = data
    case .array(let values):
      array = WireValueArray.with { $0.values = values.map(WireValue.init) }
    case .dictionary(let members):
      dictionary = WireValueDictionary.with {
        $0.members = members.sorted { Array($0.key.utf8).lexicographicallyPrecedes($1.key.utf8) }
          .map { key, value in
            WireValueMember.with {
              $0.key = key
              $0.value = WireValue(value)
            }
          }
      }
    }
  }
}

@Suite("Hostile encoded values")
struct HostileValueTests {
  static let refused: [(String, [UInt8], ValueError)] = [
    ("nothing", [], .malformed),
    ("tag alone", [0x08], .malformed),
    ("bool of 2", [0x08, 2], .notCanonical),
    ("longer bool than needed", [0x08, 0x81, 0], .notCanonical),
    ("longer integer than needed", [0x10, 0x80, 0], .notCanonical),
    ("more than 64 bits", [0x10] + Array(repeating: 0xFF, count: 9) + [0x02], .malformed),
    ("an endless integer", [0x10] + Array(repeating: 0x80, count: 40), .malformed),
    ("half a double", [0x19, 0, 0, 0, 0], .malformed),
    ("text that is not UTF-8", [0x22, 2, 0xC3, 0x28], .malformed),
    ("a surrogate", [0x22, 3, 0xED, 0xA0, 0x80], .malformed),
    ("longer text than there is", [0x22, 3, 0x61, 0x61], .malformed),
    ("2^63 bytes of data", [0x32] + Array(repeating: 0x80, count: 9) + [1], .malformed),
    ("wrong wire type", [0x09, 0, 0, 0, 0, 0, 0, 0, 0], .malformed),
    ("field 0", [0x02, 0], .malformed),
    ("unknown field", [0x48, 0], .notCanonical),
    ("unknown field after the kind", [0x08, 1, 0x48, 0], .notCanonical),
    ("two kinds", [0x08, 1, 0x08, 1], .notCanonical),
    ("tag longer than needed", [0x88, 0x00, 0x01], .notCanonical),
    ("element without a kind", [0x3A, 2, 0x0A, 0], .malformed),
    ("element beyond its array", [0x3A, 2, 0x0A, 2, 0x08, 1], .malformed),
    ("member without a value", [0x42, 5, 0x0A, 3, 0x0A, 1, 0x61], .malformed),
    ("empty member", [0x42, 2, 0x0A, 0], .malformed),
    ("empty key spelled out", [0x42, 8, 0x0A, 6, 0x0A, 0, 0x12, 2, 0x08, 1], .notCanonical),
    ("value before key", [0x42, 9, 0x0A, 7, 0x12, 2, 0x08, 1, 0x0A, 1, 0x61], .notCanonical),
    ("members out of order", dictionary([[0x62], [0x61]]), .notCanonical),
    ("the same key twice", dictionary([[0x61], [0x61]]), .notCanonical),
    (
      "canonically equivalent keys", dictionary([[0x65, 0xCC, 0x81], [0xC3, 0xA9]]), .malformed
    ),
  ]

  /// A dictionary message with these keys, each with the value true.
  private static func dictionary(_ keys: [[UInt8]]) -> [UInt8] {
    var members: [UInt8] = []
    for key in keys {
      members += [0x0A, UInt8(key.count + 6), 0x0A, UInt8(key.count)]
      members += key
      members += [0x12, 2, 0x08, 1]
    }
    return [0x42, UInt8(members.count)] + members
  }

  @Test(arguments: refused)
  func `refused with its reason`(name: String, bytes: [UInt8], error: ValueError) {
    #expect(throws: error, Comment(rawValue: name)) { try EncodedValue(checking: bytes) }
  }

  @Test func `random bytes are an encoding or an error`() {
    let seed = testSeed("random bytes")
    var random = SeededGenerator(state: seed)
    let likely: [UInt8] = [0x08, 0x10, 0x19, 0x22, 0x29, 0x32, 0x3A, 0x42, 0x0A, 0x12, 0, 1, 2, 4]
    for _ in 0..<20_000 {
      let count = Int.random(in: 0..<40, using: &random)
      let bytes = (0..<count).map { _ in
        Bool.random(using: &random)
          ? likely.randomElement(using: &random) ?? 0 : UInt8.random(in: 0...255, using: &random)
      }
      expectCanonicalOrError(bytes, seed: seed)
    }
  }

  @Test func `mutated encodings are an encoding or an error`() throws {
    let seed = testSeed("mutated encodings")
    var random = SeededGenerator(state: seed)
    for _ in 0..<2_000 {
      var bytes = try EncodedValue(.random(depth: 4, using: &random)).bytes
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[index] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
        case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: index)
        default: bytes.removeSubrange(index..<min(bytes.count, index + 3))
        }
        if bytes.isEmpty { bytes = [0x3A] }
      }
      expectCanonicalOrError(bytes, seed: seed)
    }
  }

  /// Bytes that are accepted decode to a value that encodes to the same bytes.
  private func expectCanonicalOrError(_ bytes: [UInt8], seed: UInt64) {
    guard let accepted = try? EncodedValue(checking: bytes) else { return }
    let again = try? EncodedValue(accepted.decoded())
    #expect(again?.bytes == bytes, "seed \(seed)")
  }
}

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
