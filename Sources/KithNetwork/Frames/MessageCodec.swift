internal import KithCrypto
internal import NIOCore

/// The error that ends a session because of its bytes.
enum FrameError: Error, Equatable {
  /// A frame does not decrypt.
  case notAuthentic
  /// A frame or message has a length that the protocol does not allow.
  case malformed
  /// A message is longer than the session allows.
  case tooLong
  /// The session's nonces are used up.
  case exhausted
}

/// Converts messages to frames and back.
///
/// Let `plaintext` be
/// - the message's length as 4 bytes, big-endian,
/// - the message,
/// - zero bytes up to a multiple of 64.
///
/// It is cut into pieces of 65,519 bytes; the last may be shorter, none is empty. Each piece is a
/// frame:
/// - the number of bytes that follow in it, as 2 bytes, big-endian: 17 to 65,535,
/// - the piece as a Noise transport message: ChaCha20-Poly1305 without additional data, its tag of
///   16 bytes last, under this direction's key and a nonce that counts frames from 0.
///
/// So a message's length decides the lengths of all its frames. A reader refuses any other cut, and
/// padding that is not zero.
///
/// Not `Sendable`: it belongs to one channel's event loop.
final class MessageCodec {
  private var ciphers: TransportPair
  /// The maximum length of a message that is read.
  var messageLimit: Int

  private var message: [UInt8] = []
  /// The number of bytes that `message` still lacks.
  private var missingBytes = 0
  /// The number of plaintext bytes still to come, with padding; 0: the next frame starts a message.
  private var missingPlaintext = 0

  init(ciphers: consuming TransportPair, messageLimit: Int) {
    self.ciphers = ciphers
    self.messageLimit = messageLimit
  }

  /// Returns the number of plaintext bytes of a message, with its length word and padding.
  static func plaintextBytes(of messageBytes: Int) -> Int {
    let bytes = NetworkLimits.messageLengthBytes + messageBytes
    let padding = NetworkLimits.paddingBytes
    return (bytes + padding - 1) / padding * padding
  }

  /// Returns the number of bytes of a message on the wire.
  static func wireBytes(of messageBytes: Int) -> Int {
    let plaintext = plaintextBytes(of: messageBytes)
    let piece = NetworkLimits.framePlaintextBytes
    let frames = (plaintext + piece - 1) / piece
    return plaintext + frames * (NetworkLimits.frameLengthBytes + NetworkLimits.tagBytes)
  }

  /// Appends the frames of a message.
  ///
  /// - Complexity: O(*n*); the message is copied once and encrypted in place.
  func seal(_ message: [UInt8], into buffer: inout ByteBuffer) throws(FrameError) {
    guard message.count <= NetworkLimits.messageBytes else { throw .tooLong }
    buffer.reserveCapacity(minimumWritableBytes: Self.wireBytes(of: message.count))
    let total = Self.plaintextBytes(of: message.count)
    var offset = 0
    while offset < total {
      let count = min(NetworkLimits.framePlaintextBytes, total - offset)
      let frameBytes = count + NetworkLimits.tagBytes
      buffer.writeInteger(UInt16(frameBytes))
      var isSealed = false
      buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: frameBytes) { target in
        let frame = UnsafeMutableRawBufferPointer(rebasing: target[..<frameBytes])
        Self.fill(frame, count, from: message, at: offset)
        isSealed = (try? ciphers.send.encryptInPlace(frame)) != nil
        return frameBytes
      }
      guard isSealed else { throw .exhausted }
      offset += count
    }
  }

  /// Writes `count` bytes of the message's plaintext, from `offset` on.
  private static func fill(
    _ target: UnsafeMutableRawBufferPointer, _ count: Int, from message: [UInt8], at offset: Int
  ) {
    var position = 0
    if offset == 0 {
      target.storeBytes(of: UInt32(message.count).bigEndian, as: UInt32.self)
      position = NetworkLimits.messageLengthBytes
    }
    let start = offset + position - NetworkLimits.messageLengthBytes
    let copied = max(0, min(count - position, message.count - start))
    if copied > 0 {
      message.withUnsafeBytes { source in
        UnsafeMutableRawBufferPointer(rebasing: target[position..<position + copied])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: source[start..<start + copied]))
      }
    }
    let padded = position + copied
    if padded < count {
      UnsafeMutableRawBufferPointer(rebasing: target[padded..<count])
        .initializeMemory(as: UInt8.self, repeating: 0)
    }
  }

  /// Takes the next complete message out of the buffer; nil: more bytes are needed.
  ///
  /// Memory grows with the received bytes, not with the length that they claim.
  /// - Complexity: O(*n*); frames are decrypted in place and copied once.
  func open(from buffer: inout ByteBuffer) throws(FrameError) -> [UInt8]? {
    while let length = buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) {
      let frameBytes = Int(length)
      try check(frameBytes: frameBytes)
      guard buffer.readableBytes >= NetworkLimits.frameLengthBytes + frameBytes else { return nil }
      buffer.moveReaderIndex(forwardBy: NetworkLimits.frameLengthBytes)
      let result = buffer.withUnsafeMutableReadableBytes { bytes in
        openFrame(UnsafeMutableRawBufferPointer(rebasing: bytes[..<frameBytes]))
      }
      buffer.moveReaderIndex(forwardBy: frameBytes)
      try result.get()
      if missingPlaintext == 0 {
        defer { message = [] }
        return message
      }
    }
    return nil
  }

  /// Checks a frame's length before its bytes have come.
  private func check(frameBytes: Int) throws(FrameError) {
    let count = frameBytes - NetworkLimits.tagBytes
    if missingPlaintext > 0 {
      guard count == min(missingPlaintext, NetworkLimits.framePlaintextBytes) else {
        throw .malformed
      }
    } else {
      guard
        count == NetworkLimits.framePlaintextBytes
          || count >= NetworkLimits.paddingBytes && count % NetworkLimits.paddingBytes == 0
      else { throw .malformed }
      guard count <= Self.plaintextBytes(of: messageLimit) else { throw .tooLong }
    }
  }

  private func openFrame(_ frame: UnsafeMutableRawBufferPointer) -> Result<Void, FrameError> {
    guard let count = try? ciphers.receive.decryptInPlace(frame) else {
      return .failure(.notAuthentic)
    }
    var piece = UnsafeRawBufferPointer(rebasing: frame[..<count])
    if missingPlaintext == 0 {
      let length = Int(UInt32(bigEndian: piece.loadUnaligned(as: UInt32.self)))
      guard length <= messageLimit else { return .failure(.tooLong) }
      missingBytes = length
      missingPlaintext = Self.plaintextBytes(of: length)
      guard count == min(missingPlaintext, NetworkLimits.framePlaintextBytes) else {
        return .failure(.malformed)
      }
      missingPlaintext -= NetworkLimits.messageLengthBytes
      piece = UnsafeRawBufferPointer(rebasing: piece[NetworkLimits.messageLengthBytes...])
    }
    missingPlaintext -= piece.count
    let content = min(missingBytes, piece.count)
    message.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece[..<content]))
    missingBytes -= content
    let padding = UnsafeRawBufferPointer(rebasing: piece[content...])
    guard padding.allSatisfy({ $0 == 0 }) else { return .failure(.malformed) }
    return .success(())
  }
}
