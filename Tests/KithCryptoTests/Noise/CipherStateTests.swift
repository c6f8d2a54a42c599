import KithCrypto
import Testing

@Suite("The Noise transport cipher")
struct CipherStateTests {
  private func cipher(nextNonce: UInt64 = 0) -> CipherState {
    CipherState(
      key: SecretBytes(count: 32) { $0.initializeMemory(as: UInt8.self, repeating: 3) },
      nextNonce: nextNonce)
  }

  @Test("The last nonce is never used")
  func exhaustion() throws {
    var sender = cipher(nextNonce: .max - 1)
    var receiver = cipher(nextNonce: .max - 1)
    let last = try sender.encrypt([1, 2, 3])
    let opened = try receiver.decrypt(last)
    #expect(opened == [1, 2, 3])
    let sending = caught { () throws(NoiseError) in _ = try sender.encrypt([4]) }
    let receiving = caught { () throws(NoiseError) in _ = try receiver.decrypt(last) }
    #expect(sending == .nonceExhausted)
    #expect(receiving == .nonceExhausted)
  }

  @Test("A message that fails does not move the counter; replays and reorderings fail")
  func order() throws {
    var sender = cipher()
    var receiver = cipher()
    let first = try sender.encrypt([1])
    let second = try sender.encrypt([2])
    let early = caught { () throws(NoiseError) in _ = try receiver.decrypt(second) }
    let one = try receiver.decrypt(first)
    let replay = caught { () throws(NoiseError) in _ = try receiver.decrypt(first) }
    let two = try receiver.decrypt(second)
    #expect(early == .authenticationFailed)
    #expect(replay == .authenticationFailed)
    #expect([one, two] == [[1], [2]])
  }

  @Test("A frame that fails in place, in an array or in raw memory, does not move the counter")
  func failingInPlace() throws {
    var sender = cipher()
    var receiver = cipher()
    var rawReceiver = cipher()
    let message = try sender.encrypt([1, 2, 3])
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: message.count, alignment: 1)
    defer { buffer.deallocate() }
    var altered = message
    altered[0] ^= 1
    buffer.copyBytes(from: altered)
    let inArray = caught { () throws(NoiseError) in _ = try receiver.decryptInPlace(&altered) }
    let inMemory = caught { () throws(NoiseError) in _ = try rawReceiver.decryptInPlace(buffer) }
    #expect(inArray == .authenticationFailed && inMemory == .authenticationFailed)
    let short = UnsafeMutableRawBufferPointer(rebasing: buffer[..<15])
    let tooShort = caught { () throws(NoiseError) in _ = try rawReceiver.decryptInPlace(short) }
    #expect(tooShort == .messageTooShort)
    let nonces = [receiver.nextNonce, rawReceiver.nextNonce]
    #expect(nonces == [0, 0])
    var whole = message
    buffer.copyBytes(from: message)
    let counts = [try receiver.decryptInPlace(&whole), try rawReceiver.decryptInPlace(buffer)]
    #expect(counts == [3, 3])
    #expect(Array(whole[..<3]) == [1, 2, 3] && Array(buffer[..<3]) == [1, 2, 3])
  }

  @Test("Altered bytes, altered additional data and lengths are checked")
  func tampering() throws {
    var sender = cipher()
    let message = try sender.encrypt([7, 7, 7], authenticating: [1, 2])
    for index in message.indices {
      var receiver = cipher()
      var altered = message
      altered[index] ^= 1
      let error = caught { () throws(NoiseError) in
        _ = try receiver.decrypt(altered, authenticating: [1, 2])
      }
      let cut = caught { () throws(NoiseError) in
        _ = try receiver.decrypt(Array(message[..<index]), authenticating: [1, 2])
      }
      #expect(error == .authenticationFailed)
      #expect(cut == (index < 16 ? .messageTooShort : .authenticationFailed))
    }
    var receiver = cipher()
    let other = caught { () throws(NoiseError) in
      _ = try receiver.decrypt(message, authenticating: [1, 3])
    }
    let opened = try receiver.decrypt(message, authenticating: [1, 2])
    #expect(other == .authenticationFailed)
    #expect(opened == [7, 7, 7])
    let long = caught { () throws(NoiseError) in
      _ = try sender.encrypt([UInt8](repeating: 0, count: 65_520))
    }
    #expect(long == .messageTooLong)
  }

  @Test("In place gives the same bytes, up to the largest frame")
  func inPlace() throws {
    for count in [0, 1, 63, 64, 65, 1_024, 65_519] {
      let plaintext = [UInt8](repeating: 9, count: count)
      var copying = cipher()
      var inPlace = cipher()
      var raw = cipher()
      let expected = try copying.encrypt(plaintext)
      var message = plaintext + [UInt8](repeating: 0, count: CipherState.overhead)
      try inPlace.encryptInPlace(&message)
      #expect(message == expected)
      var receiver = cipher()
      var rawReceiver = cipher()
      let size = try receiver.decryptInPlace(&message)
      #expect(size == count)
      #expect(Array(message[..<size]) == plaintext)

      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count + 16, alignment: 1)
      defer { buffer.deallocate() }
      buffer.copyBytes(from: plaintext)
      try raw.encryptInPlace(buffer)
      #expect(Array(buffer) == expected)
      let rawSize = try rawReceiver.decryptInPlace(buffer)
      #expect(rawSize == count)
      #expect(Array(buffer[..<count]) == plaintext)
    }
  }
}

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
