import KithCrypto
import Testing

@Suite("HMAC over BLAKE2b-512")
struct NoiseHashTests {
  @Test("It is RFC 2104's, made with Python's hmac, and not BLAKE2b's keyed mode")
  func knownAnswer() {
    let key = [UInt8](0..<64)
    let message = [UInt8]("message".utf8)
    let expected = hex(
      """
      7c064ba1db2248e6b489a937246f1225abd82b532574ad2687ee84ab6816c612
      45235af645bb5c63db8e9dd5e157699ddb5769e32173d366e15ba676c0e6cbfa
      """)
    var tag = [UInt8](repeating: 0, count: 64)
    tag.withUnsafeMutableBytes { tag in
      key.withUnsafeBytes { key in
        message.withUnsafeBytes { message in
          NoiseHash.authenticate(key: key, message, nil, into: tag)
        }
      }
    }
    #expect(tag == expected)
    tag.withUnsafeMutableBytes { tag in
      key.withUnsafeBytes { key in
        message.dropLast().withUnsafeBytes { message in
          NoiseHash.authenticate(key: key, message, UInt8(ascii: "e"), into: tag)
        }
      }
    }
    #expect(tag == expected)
  }
}
