internal import KithCore
internal import KithCrypto
internal import NIOCore
internal import Synchronization

/// The parameters of a handshake (`Docs/Protocol.md`, "Handshake").
struct NoiseParameters: Sendable {
  static let sessionPrologue = Array("Kith/1".utf8)
  static let pairingPrologue = Array("kith-pair-1".utf8)
  static let name = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b"

  var prologue: [UInt8]
  let keys: DeviceKeys
  let entropy: SharedEntropy

  func start(_ role: HandshakeRole, psk: SharedPresharedKey) throws(NoiseError) -> NoiseExchange {
    let ephemeral = entropy.use { TransportPrivateKey(random: &$0) }
    return NoiseExchange(
      try HandshakeState(
        protocol: NoiseProtocol(Self.name), role: role, prologue: prologue,
        staticKey: keys.transport, ephemeral: ephemeral, psk: psk.key))
  }
}

/// A running handshake. Belongs to one channel's event loop.
final class NoiseExchange {
  private var state: HandshakeState?

  init(_ state: consuming HandshakeState) {
    self.state = consume state
  }

  /// Nil until it is known.
  var remoteStaticKey: TransportPublicKey? { state?.remoteStaticKey }

  func write(_ payload: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let message = try state?.writeMessage(payload: payload) else { throw .wrongStage }
    return message
  }

  func read(_ message: [UInt8]) throws(NoiseError) -> [UInt8] {
    guard let payload = try state?.readMessage(message) else { throw .wrongStage }
    return payload
  }

  /// Ends the handshake.
  func split() throws(NoiseError) -> TransportPair {
    guard let state = state.take() else { throw .wrongStage }
    return try state.split()
  }
}

/// Holds at most ``NetworkLimits/handshakeBytes``.
struct HandshakeBuffer {
  /// An impossible length.
  struct Malformed: Error {}

  private var bytes = ByteBuffer()
  private var consumed = 0
  private let leastMessageBytes: Int

  init(leastMessageBytes: Int = NetworkLimits.leastFirstMessageBytes) {
    self.leastMessageBytes = leastMessageBytes
  }

  /// Nil: more bytes are needed.
  var nextLength: Int? {
    bytes.getInteger(at: bytes.readerIndex, as: UInt16.self).map { Int($0) }
  }

  mutating func append(_ incoming: ByteBuffer) {
    bytes.writeImmutableBuffer(incoming)
  }

  /// Nil: more bytes are needed.
  mutating func next() throws(Malformed) -> [UInt8]? {
    guard let length = nextLength else { return nil }
    let frameBytes = NetworkLimits.frameLengthBytes + length
    guard length >= leastMessageBytes,
      consumed + frameBytes <= NetworkLimits.handshakeBytes
    else { throw Malformed() }
    guard bytes.readableBytes >= frameBytes else { return nil }
    bytes.moveReaderIndex(forwardBy: NetworkLimits.frameLengthBytes)
    consumed += frameBytes
    return bytes.readBytes(length: length)
  }

  /// The bytes after the last message.
  mutating func takeRest() -> ByteBuffer {
    defer { bytes = ByteBuffer() }
    return bytes
  }
}

extension ChannelHandlerContext {
  /// Writes a message, with its length first.
  @discardableResult
  func writeHandshakeMessage(_ message: [UInt8]) -> EventLoopFuture<Void> {
    var frame = channel.allocator.buffer(
      capacity: NetworkLimits.frameLengthBytes + message.count)
    frame.writeInteger(UInt16(message.count))
    frame.writeBytes(message)
    return writeAndFlush(NIOAny(frame))
  }

  /// `rest`: the bytes after the last message.
  func giveWay(
    from own: some RemovableChannelHandler & ChannelHandler, to handler: some ChannelHandler,
    rest: ByteBuffer
  ) throws {
    try channel.pipeline.syncOperations.addHandler(handler, position: .after(own))
    if rest.readableBytes > 0 { fireChannelRead(NIOAny(rest)) }
    channel.pipeline.syncOperations.removeHandler(own, promise: nil)
  }
}

/// Shared by all event loops.
final class SharedEntropy: Sendable {
  private let source: Mutex<any Entropy>

  init(_ source: any Entropy) {
    self.source = Mutex(source)
  }

  func use<R: ~Copyable & Sendable, E: Error>(
    _ body: (inout any Entropy) throws(E) -> R
  ) throws(E) -> R {
    try source.withLock { source throws(E) in try body(&source) }
  }

  /// From 0 up to 1.
  func fraction() -> Double { Double(number(ofBytes: 6)) / Double(1 << 48) }

  func number() -> UInt64 { number(ofBytes: 8) }

  private func number(ofBytes count: Int) -> UInt64 {
    source.withLock { $0.bytes(count) }.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
