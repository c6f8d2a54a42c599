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
