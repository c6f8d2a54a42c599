import KithCore
import KithCrypto
import NIOCore
import NIOEmbedded
import Synchronization
import Testing

@testable import KithNetwork

/// Handshakes over a channel that ends before a write returns: NIO ends it so if the peer has reset the
/// connection.
struct BrokenHandshakeTests {
  /// Keeps the written messages, and closes the channel instead of writing a further one.
  private final class Kernel: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    private let limit: Int
    private(set) var written: [[UInt8]] = []

    init(limit: Int) { self.limit = limit }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard written.count < limit else {
        promise?.fail(ChannelError.ioOnClosedChannel)
        return context.close(promise: nil)
      }
      let frame = Array(buffer: unwrapOutboundIn(data))
      written.append(Array(frame.dropFirst(NetworkLimits.frameLengthBytes)))
      promise?.succeed()
    }
  }

  private final class Owner: DiallerHandshakeOwner {
    private(set) var calls: [String] = []

    func offer() -> [UInt8] { [] }
    func answer(to reply: [UInt8], from key: TransportPublicKey) -> [UInt8] { [] }

    func finished(_ exchange: NoiseExchange) -> SessionHandler? {
      calls.append("finished")
      return nil
    }

    func failed(_ error: (any Error)?) { calls.append("failed") }
  }

  private let channel = EmbeddedChannel()

  private func connect(_ handlers: [any ChannelHandler]) throws {
    try channel.pipeline.syncOperations.addHandlers(handlers)
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
  }

  private func frame(_ message: [UInt8]) -> ByteBuffer {
    var frame = ByteBuffer(integer: UInt16(message.count))
    frame.writeBytes(message)
    return frame
  }

  private func exchange(_ role: HandshakeRole, _ number: UInt64) throws -> NoiseExchange {
    try NoiseParameters(
      prologue: NoiseParameters.sessionPrologue, keys: deviceKeys(number),
      entropy: SharedEntropy(SeededEntropy(seed: number))
    ).start(role, psk: psk(1))
  }

  /// It would be counted as open for ever, and its device not be dialled again.
  @Test func `a session whose last handshake message cannot be sent does not begin`() throws {
    let (kernel, owner) = (Kernel(limit: 1), Owner())
    try connect([
      kernel,
      DiallerHandshakeHandler(
        exchange: exchange(.initiator, 1), owner: owner, timeout: .seconds(5)),
    ])
    let listener = try exchange(.responder, 2)
    _ = try listener.read(kernel.written[0])
    try channel.writeInbound(frame(listener.write([])))
    #expect(!channel.isActive)
    #expect(owner.calls == ["failed"])
  }

  @Test func `an exchange that ends as it is confirmed does not end the next one`() throws {
    let code = CodePairingTests.code(1)
    let listener = PairingListener(keys: deviceKeys(1), token: psk(1), code: code, invitation: [])
    let kernel = Kernel(limit: 1)
    try connect([
      kernel,
      CodeInviterHandler(
        listener: listener, id: 1, code: code, bucket: AddressBucket(nil),
        withoutCode: ListenerHandshakeHandler(
          parameters: listener.parameters, owner: InvitingConnection(listener: listener, id: 1),
          timeout: .seconds(5))),
    ])
    var entropy = SeededEntropy(seed: 2)
    var joiner = CodeJoiner(code: code, entropy: &entropy)
    try channel.writeInbound(frame(joiner.hello))
    channel.embeddedEventLoop.run()
    var last = frame(try joiner.prove(to: kernel.written[0], entropy: &entropy))
    last.writeImmutableBuffer(frame([UInt8](repeating: 7, count: 96)))

    let hasBegun = Mutex(false)
    listener.enqueue(2, from: AddressBucket(nil)) { verdict in
      if case .begin = verdict { hasBegun.withLock { $0 = true } }
    }
    #expect(!hasBegun.withLock { $0 })
    try channel.writeInbound(last)
    #expect(!channel.isActive)
    #expect(hasBegun.withLock { $0 })
    #expect(!listener.begin(), "a third exchange could begin beside the second")
  }
}
