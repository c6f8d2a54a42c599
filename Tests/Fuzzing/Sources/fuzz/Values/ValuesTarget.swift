import Foundation
import SwiftProtobuf

@testable import KithCore

extension FuzzTarget {
  /// The decoder of values, on any bytes.
  ///
  /// The bytes that it accepts must be the one encoding of the value that it returns. Protocol
  /// Buffers' own reader must read them alike, and write the same bytes again.
  static let values = FuzzTarget(name: "values") { bytes in
    let input = Array(bytes)
    var decoder = ValueDecoder(input)
    let value: PropertyListValue
    do {
      value = try decoder.decode()
    } catch {
      require((try? EncodedValue(checking: input)) == nil, "checked, and refused")
      return
    }
    do {
      let again = try EncodedValue(value)
      require(again.bytes == input, "another encoding than the one that was read")
      require(again == (try EncodedValue(checking: input)), "two readings differ")
      require(try again.decoded() == value, "a value that does not equal itself")
    } catch {
      fatalError("what was read cannot be written: \(error)")
    }
    var options = BinaryDecodingOptions()
    options.messageDepthLimit = 1_000
    let wire = try? WireValue(serializedBytes: input, options: options)
    require(wire != nil, "Protocol Buffers' reader refuses it")
    require(wire?.encodedBytes() == input, "Protocol Buffers' writer writes other bytes")
  } seeds: {
    let nested = (0..<63).reduce(PropertyListValue.integer(1)) { inner, _ in .array([inner]) }
    let values: [(String, PropertyListValue)] = [
      ("bool", true), ("integer", -3), ("least", .integer(.min)), ("double", 1.5),
      ("nan", .double(.nan)), ("string", "dark"), ("composed", "\u{e9}e\u{301}"),
      ("date", .date(Date(timeIntervalSinceReferenceDate: 1))), ("data", .data(Data([0, 1, 2]))),
      ("array", [1, "x", [], [false]]), ("dictionary", ["b": [1, "x"], "a": true, "": 0.5]),
      ("nested", nested),
    ]
    return try values.map { ($0.0, try EncodedValue($0.1).bytes) }
  }
}
