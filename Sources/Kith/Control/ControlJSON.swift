internal import NIOCore

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// Lines of JSON.
enum ControlJSON {
  /// A value's line, with its line feed.
  static func encode(_ value: some Encodable) throws -> ByteBuffer {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    var buffer = ByteBuffer(bytes: try encoder.encode(value))
    buffer.writeInteger(UInt8(ascii: "\n"))
    return buffer
  }

  /// What a line holds; nil where it is malformed.
  static func decode<Value: Decodable>(_ type: Value.Type, _ line: ByteBuffer) -> Value? {
    try? JSONDecoder().decode(type, from: Data(line.readableBytesView))
  }
}
