internal import SwiftProtobuf

extension SwiftProtobuf.Message {
  /// Encoding fails only for required fields and `Any`, which kith.proto does not use.
  func encodedBytes() -> [UInt8] {
    do {
      return try serializedBytes()
    } catch {
      preconditionFailure("a kith.v1 message cannot be encoded: \(error)")
    }
  }
}
