import NIOCore

@testable import KithCrypto
@testable import KithNetwork

/// A session's stream of bytes, as a member with the right keys could send it, and split anywhere.
///
/// An input is a list of pieces, each of which becomes bytes on the wire:
///
/// | first byte | then | becomes |
/// | --- | --- | --- |
/// | 0 | a byte | a message of so many bytes, sealed by the codec |
/// | 5 | a length in two bytes | the same, twice at most: large ones take their time |
/// | 1 | a block | a frame with these bytes as plaintext |
/// | 2 | a block | these bytes |
/// | 3 | a length, zeros, a byte | a frame of a message's start: the length word, then zeros |
/// | 4 | a block, a place, a byte | as 1, with one byte altered |
///
/// The two bytes before the pieces say how the stream is cut.
private struct Stream {
  var wire = ByteBuffer()
  /// Whether every piece was sealed by the codec.
  var isSound = true
  var messages: [[UInt8]] = []

  init(_ input: inout FuzzInput) {
    let codec = FrameKeys.codec(limit: NetworkLimits.messageBytes)
    // Frames made by hand take the codec's nonces in turn.
    var nonce: UInt64 = 0
    var large = 0
    for _ in 0..<32 where !input.isAtEnd {
      let kind = input.number(below: 6)
      switch kind {
      case 0, 5:
        let size = kind == 0 ? Int(input.byte()) : input.uint16()
        if size > 255 { large += 1 }
        guard isSound, size < 256 || large < 3 else { continue }
        let message = [UInt8](repeating: UInt8(nonce & 0xff), count: size)
        guard (try? codec.seal(message, into: &wire)) != nil else { fatalError("not sealed") }
        nonce += UInt64((MessageCodec.plaintextBytes(of: message.count) + 65_518) / 65_519)
        messages.append(message)
      case 1: frame(input.block(), &nonce)
      case 2:
        isSound = false
        wire.writeBytes(input.block())
      case 3:
        let length = input.uint16()
        let plaintext = input.uint16()
        if plaintext > 1_000 { large += 1 }
        guard plaintext <= 1_000 || large < 3 else { continue }
        frame(
          [0, UInt8(input.byte() & 1), UInt8(length >> 8), UInt8(length & 0xff)]
            + [UInt8](repeating: 0, count: plaintext), &nonce)
      default:
        let start = wire.writerIndex
        frame(input.block(), &nonce)
        let place = start + input.uint16()
        guard place < wire.writerIndex else { continue }
        let byte = wire.getInteger(at: place, as: UInt8.self) ?? 0
        wire.setInteger(byte ^ input.byte(), at: place)
      }
    }
  }

  private mutating func frame(_ plaintext: [UInt8], _ nonce: inout UInt64) {
    isSound = false
    guard plaintext.count <= NetworkLimits.framePlaintextBytes else { return }
    var cipher = FrameKeys.cipher(nonce: nonce)
    guard let frame = try? cipher.encrypt(plaintext) else { fatalError("not encrypted") }
    nonce += 1
    wire.writeInteger(UInt16(frame.count))
    wire.writeBytes(frame)
  }
}

private enum FrameKeys {
  static func cipher(nonce: UInt64 = 0) -> CipherState {
    CipherState(
      key: SecretBytes(count: 32) { $0.copyBytes(from: repeatElement(7, count: 32)) },
      nextNonce: nonce)
  }

  /// A codec that sends and reads under the one key.
  static func codec(limit: Int) -> MessageCodec {
    MessageCodec(
      ciphers: TransportPair(send: cipher(), receive: cipher()), messageLimit: limit)
  }
}

/// A reader's result for a stream.
private struct Reading: Equatable {
  var messages: [[UInt8]] = []
  var error: FrameError?
  /// Bytes that a whole message took.
  var taken = 0

  init(_ wire: ByteBuffer, limit: Int, cuts: () -> Int) {
    let codec = FrameKeys.codec(limit: limit)
    var rest = wire
    var buffer = ByteBuffer()
    while rest.readableBytes > 0 {
      var piece = rest.readSlice(length: min(rest.readableBytes, max(1, cuts())))
      if piece != nil { buffer.writeBuffer(&piece!) }
      do throws(FrameError) {
        while let message = try codec.open(from: &buffer) {
          messages.append(message)
          require(message.count <= limit, "a message beyond the limit")
        }
      } catch {
        self.error = error
        return
      }
      buffer.discardReadBytes()
      require(
        buffer.readableBytes <= NetworkLimits.frameBytes + NetworkLimits.frameLengthBytes,
        "more than a frame is held back")
    }
    taken = wire.readableBytes - buffer.readableBytes
  }
}

extension FuzzTarget {
  /// Frames to messages.
  ///
  /// How a stream is cut must not matter; sound streams give what was sent; and since a message has
  /// one form on the wire, the messages read, sealed again, are the bytes that were read.
  static let frames = FuzzTarget(name: "frames") { bytes in
    var input = FuzzInput(bytes)
    let (width, limitByte) = (input.number(below: 256) + 1, input.byte())
    let limit = limitByte & 1 == 0 ? NetworkLimits.messageBytes : Int(limitByte) << 4
    var head = FuzzInput(bytes)
    readHandshake(&head)
    let stream = Stream(&input)
    let whole = Reading(stream.wire, limit: limit) { .max }
    var cut = 0
    let pieces = Reading(stream.wire, limit: limit) {
      cut = (cut + width) % 997
      return cut * width % 4_099 + 1
    }
    require(
      whole.messages == pieces.messages && whole.error == pieces.error,
      "the cut of the stream matters: \(whole.messages.count), \(pieces.messages.count)")
    if stream.isSound, limitByte & 1 == 0 {
      require(whole.messages == stream.messages && whole.error == nil, "a message was lost")
    }
    let codec = FrameKeys.codec(limit: limit)
    var again = ByteBuffer()
    for message in whole.messages {
      require((try? codec.seal(message, into: &again)) != nil, "not sealed again")
    }
    require(
      stream.wire.readableBytesView.starts(with: again.readableBytesView),
      "a message was read that has another form on the wire")
  } seeds: {
    var seeds: [(String, [UInt8])] = []
    func add(_ name: String, _ build: (inout FuzzOutput) -> Void) {
      var output = FuzzOutput()
      output.bytes(12, 0)
      build(&output)
      seeds.append((name, output.bytes))
    }
    add("messages") { for size in [0, 60, 61, 255] { $0.bytes(0, size) } }
    add("long") { $0.bytes(5, 0xff, 0xff, 5, 0xff, 0xeb) }
    add("frame") {
      $0.byte(1)
      $0.block([0, 0, 0, 1, 42] + [UInt8](repeating: 0, count: 59))
    }
    add("length") { $0.bytes(3, 0, 100, 0, 124, 0) }
    add("two frames") { $0.bytes(3, 0xff, 0xff, 0xff, 0xeb, 0, 3, 0, 40, 0, 60, 0) }
    add("altered") {
      $0.byte(4)
      $0.block([0, 0, 0, 1, 42] + [UInt8](repeating: 0, count: 59))
      $0.bytes(0, 5, 1)
    }
    add("raw") {
      $0.bytes(0, 9, 2)
      $0.block([0, 80] + [UInt8](0..<80))
    }
    return seeds
  }

  /// The bytes as a handshake's frames, in one piece and byte by byte.
  private static func readHandshake(_ input: inout FuzzInput) {
    let bytes = input.rest()
    func read(by width: Int) -> (messages: [[UInt8]], isMalformed: Bool) {
      var buffer = HandshakeBuffer()
      var messages: [[UInt8]] = []
      for start in stride(from: 0, to: bytes.count, by: width) {
        buffer.append(ByteBuffer(bytes: bytes[start..<min(bytes.count, start + width)]))
        do {
          while let message = try buffer.next() { messages.append(message) }
        } catch {
          return (messages, true)
        }
      }
      return (messages, false)
    }
    let (whole, single) = (read(by: max(1, bytes.count)), read(by: 1))
    require(
      whole.messages == single.messages && whole.isMalformed == single.isMalformed,
      "the cut of a handshake matters")
    require(
      whole.messages.reduce(0) { $0 + $1.count } <= NetworkLimits.handshakeBytes,
      "more of a handshake than it may have")
  }
}
