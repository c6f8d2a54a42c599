import KithCrypto
import NIOCore
import Testing

@testable import KithNetwork

struct MessageCodecTests {
  /// Both ends of a finished handshake.
  private static func handshake() throws -> (NoiseExchange, NoiseExchange) {
    func start(_ role: HandshakeRole, _ number: UInt64) throws -> NoiseExchange {
      try NoiseParameters(
        prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(number),
        entropy: SharedEntropy(SeededEntropy(seed: number))
      ).start(role, psk: psk(1))
    }
    let (one, two) = (try start(.initiator, 1), try start(.responder, 2))
    _ = try two.read(try one.write([]))
    _ = try one.read(try two.write([]))
    _ = try two.read(try one.write([]))
    return (one, two)
  }

  static func pair(
    limit: Int = NetworkLimits.messageBytes, holdsLong: Bool = false
  ) throws -> (MessageCodec, MessageCodec) {
    let (one, two) = try handshake()
    return (
      MessageCodec(ciphers: try one.split(), messageLimit: limit),
      MessageCodec(ciphers: try two.split(), messageLimit: limit, holdsLong: holdsLong)
    )
  }

  @Test(arguments: [
    (0, 64), (59, 64), (60, 64), (61, 128), (65_515, 65_536), (131_034, 131_072),
  ])
  func wireSizes(messageBytes: Int, plaintextBytes: Int) throws {
    let (one, two) = try Self.pair()
    var buffer = ByteBuffer()
    let message = [UInt8](repeating: 5, count: messageBytes)
    try one.seal(message, into: &buffer)
    #expect(MessageCodec.plaintextBytes(of: messageBytes) == plaintextBytes)
    let frames = (plaintextBytes + 65_518) / 65_519
    #expect(buffer.readableBytes == plaintextBytes + 18 * frames)
    #expect(buffer.readableBytes == MessageCodec.wireBytes(of: messageBytes))
    #expect(try two.open(from: &buffer) == message)
    #expect(buffer.readableBytes == 0)
  }

  @Test func opensByteByByte() throws {
    let (one, two) = try Self.pair()
    var sealed = ByteBuffer()
    for size in [0, 100, 70_000] { try one.seal([UInt8](repeating: 8, count: size), into: &sealed) }
    var buffer = ByteBuffer()
    var sizes: [Int] = []
    for byte in Array(buffer: sealed) {
      buffer.writeInteger(byte)
      if let message = try two.open(from: &buffer) { sizes.append(message.count) }
      buffer.discardReadBytes()
    }
    #expect(sizes == [0, 100, 70_000])
  }

  @Test(arguments: [0, 15, 16, 17, 79, 81, 143, 65_534])
  func refusesLengthsBeforeTheBytesCome(length: Int) throws {
    let (_, two) = try Self.pair()
    var buffer = ByteBuffer(integer: UInt16(length))
    #expect(throws: FrameError.malformed) { try two.open(from: &buffer) }
  }

  @Test func refusesMessagesOverTheLimit() throws {
    let (one, two) = try Self.pair(limit: 16 << 10)
    var buffer = ByteBuffer()
    try one.seal([UInt8](repeating: 0, count: 16 << 10 | 1), into: &buffer)
    #expect(throws: FrameError.tooLong) { try two.open(from: &buffer) }
    #expect(throws: FrameError.tooLong) {
      try one.seal([UInt8](repeating: 0, count: 8 << 20 | 1), into: &buffer)
    }
  }

  /// Whether it fails or waits, nothing of it is handed on before.
  @Test(arguments: [16 << 10 | 1, 16 << 10 | 61, 70_000, 8 << 20])
  func longMessagesCanWaitForTheLimit(bytes: Int) throws {
    let (one, two) = try Self.pair(limit: 16 << 10, holdsLong: true)
    var buffer = ByteBuffer()
    let message = [UInt8](repeating: 3, count: bytes)
    for next in [[1], message, [2]] { try one.seal(next, into: &buffer) }
    #expect(try two.open(from: &buffer) == [1])
    #expect(!two.isHeld)
    for _ in 0..<2 {
      #expect(try two.open(from: &buffer) == nil)
      #expect(two.isHeld)
    }
    two.messageLimit = NetworkLimits.messageBytes
    #expect(try two.open(from: &buffer) == message)
    #expect(try two.open(from: &buffer) == [2])
    #expect(!two.isHeld && buffer.readableBytes == 0)
  }

  @Test func refusesTamperedAndRepeatedFrames() throws {
    let (one, two) = try Self.pair()
    var buffer = ByteBuffer()
    try one.seal([1], into: &buffer)
    let first = buffer
    #expect(try two.open(from: &buffer) == [1])
    buffer = first
    #expect(throws: FrameError.notAuthentic) { try two.open(from: &buffer) }
  }

  @Test func refusesOtherPaddingAndOtherCuts() throws {
    func frames(_ pieces: [[UInt8]]) throws -> (ByteBuffer, MessageCodec) {
      let (one, two) = try Self.handshake()
      var ciphers = try one.split()
      var buffer = ByteBuffer()
      for piece in pieces {
        let frame = try ciphers.send.encrypt(piece)
        buffer.writeInteger(UInt16(frame.count))
        buffer.writeBytes(frame)
      }
      return (buffer, MessageCodec(ciphers: try two.split(), messageLimit: 1 << 20))
    }
    var plaintext: [UInt8] = [0, 0, 0, 1, 42] + [UInt8](repeating: 0, count: 59)
    var (buffer, codec) = try frames([plaintext])
    #expect(try codec.open(from: &buffer) == [42])
    plaintext[63] = 1
    (buffer, codec) = try frames([plaintext])
    #expect(throws: FrameError.malformed) { try codec.open(from: &buffer) }
    plaintext = [0, 0, 0, 100] + [UInt8](repeating: 0, count: 60)
    (buffer, codec) = try frames([plaintext, [UInt8](repeating: 0, count: 64)])
    #expect(throws: FrameError.malformed) { try codec.open(from: &buffer) }
    plaintext = [0, 0, 0, 1] + [UInt8](repeating: 0, count: 124)
    (buffer, codec) = try frames([plaintext])
    #expect(throws: FrameError.malformed) { try codec.open(from: &buffer) }
    plaintext = [255, 255, 255, 255] + [UInt8](repeating: 0, count: 60)
    (buffer, codec) = try frames([plaintext])
    #expect(throws: FrameError.tooLong) { try codec.open(from: &buffer) }
  }
}
