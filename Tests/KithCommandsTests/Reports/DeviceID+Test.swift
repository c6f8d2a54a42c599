import KithCore
import KithCrypto

extension DeviceID {
  /// An id of 32 equal bytes.
  static func test(_ byte: UInt8) -> DeviceID {
    DeviceID { $0.copyBytes(from: repeatElement(byte, count: 32)) }
  }
}
