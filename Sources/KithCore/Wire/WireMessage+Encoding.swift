internal import SwiftProtobuf

extension SwiftProtobuf.Message {
  /// The message's bytes. Encoding fails only for required fields and `Any`, which the messages
  /// of kith.proto do not have.
  func encodedBytes() -> [UInt8] {
    do {
      return try serializedBytes()
    } catch {
      preconditionFailure("a kith.v1 message cannot be encoded: \(error)")
    }
  }
}
