internal import KithCrypto
internal import NIOCore

enum FrameError: Error, Equatable {
  case notAuthentic
  /// A wrong length or padding.
  case malformed
  /// Over the session's limit.
  case tooLong
  /// No nonce is left.
  case exhausted
}

/// Converts messages to frames and back (`Docs/Protocol.md`, "Frames and messages").
///
/// A message's length decides the lengths of all its frames; any other cut is refused.
///
/// Not `Sendable`: belongs to one channel's event loop.
final class MessageCodec {
  private var ciphers: TransportPair
  /// For received messages.
  var messageLimit: Int
  /// Whether a longer message waits until the limit is raised, instead of failing.
  private let holdsLong: Bool
  /// A longer message waits.
  private(set) var isHeld = false

  private var message: [UInt8] = []
  /// Nil: the next frame starts a message.
  private var messageBytes: Int?
  /// Bytes that `message` still lacks.
  private var missingBytes = 0
  /// Bytes of plaintext that the message still lacks, with its padding.
  private var missingPlaintext = 0

  init(ciphers: consuming TransportPair, messageLimit: Int, holdsLong: Bool = false) {
    self.ciphers = ciphers
    self.messageLimit = messageLimit
    self.holdsLong = holdsLong
  }

  /// The size of a message in plaintext, with its length word and padding.
  static func plaintextBytes(of messageBytes: Int) -> Int {
    let bytes = NetworkLimits.messageLengthBytes + messageBytes
    let padding = NetworkLimits.paddingBytes
    return (bytes + padding - 1) / padding * padding
  }

  static func wireBytes(of messageBytes: Int) -> Int {
    let plaintext = plaintextBytes(of: messageBytes)
    let piece = NetworkLimits.framePlaintextBytes
    let frames = (plaintext + piece - 1) / piece
    return plaintext + frames * (NetworkLimits.frameLengthBytes + NetworkLimits.tagBytes)
  }

  /// - Complexity: O(*n*); one copy, encrypted in place.
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

  /// Writes `count` bytes of the plaintext, from `offset` on.
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

  /// Takes the next message; nil: more bytes are needed, or ``isHeld``.
  ///
  /// Memory grows with the received bytes, not with the claimed length.
  /// - Complexity: O(*n*); decrypted in place, copied once.
  func open(from buffer: inout ByteBuffer) throws(FrameError) -> [UInt8]? {
    isHeld = false
    while true {
      if let message = try takeMessage() { return message }
      guard !isHeld, let length = buffer.getInteger(at: buffer.readerIndex, as: UInt16.self) else {
        return nil
      }
      let frameBytes = Int(length)
      try check(frameBytes: frameBytes)
      guard !isHeld, buffer.readableBytes >= NetworkLimits.frameLengthBytes + frameBytes else {
        return nil
      }
      buffer.moveReaderIndex(forwardBy: NetworkLimits.frameLengthBytes)
      let result = buffer.withUnsafeMutableReadableBytes { bytes in
        openFrame(UnsafeMutableRawBufferPointer(rebasing: bytes[..<frameBytes]))
      }
      buffer.moveReaderIndex(forwardBy: frameBytes)
      try result.get()
    }
  }

  /// Takes the message that the last frame ended, if it is within the limit.
  private func takeMessage() throws(FrameError) -> [UInt8]? {
    guard let messageBytes, missingPlaintext == 0 else { return nil }
    try hold(messageBytes > messageLimit)
    guard !isHeld else { return nil }
    defer { (message, self.messageBytes) = ([], nil) }
    return message
  }

  private func hold(_ isLong: Bool) throws(FrameError) {
    guard isLong else { return }
    guard holdsLong else { throw .tooLong }
    isHeld = true
  }

  /// Called before the frame's bytes have come.
  private func check(frameBytes: Int) throws(FrameError) {
    let count = frameBytes - NetworkLimits.tagBytes
    if let messageBytes {
      try hold(messageBytes > messageLimit)
      guard isHeld || count == min(missingPlaintext, NetworkLimits.framePlaintextBytes) else {
        throw .malformed
      }
    } else {
      guard
        count == NetworkLimits.framePlaintextBytes
          || count >= NetworkLimits.paddingBytes && count % NetworkLimits.paddingBytes == 0
      else { throw .malformed }
      try hold(count > Self.plaintextBytes(of: messageLimit))
    }
  }

  private func openFrame(_ frame: UnsafeMutableRawBufferPointer) -> Result<Void, FrameError> {
    guard let count = try? ciphers.receive.decryptInPlace(frame) else {
      return .failure(.notAuthentic)
    }
    var piece = UnsafeRawBufferPointer(rebasing: frame[..<count])
    if messageBytes == nil {
      let length = Int(UInt32(bigEndian: piece.loadUnaligned(as: UInt32.self)))
      guard length <= (holdsLong ? NetworkLimits.messageBytes : messageLimit) else {
        return .failure(.tooLong)
      }
      messageBytes = length
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
